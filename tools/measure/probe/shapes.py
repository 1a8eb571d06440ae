import importlib.machinery,importlib.util,sys,random
sys.dont_write_bytecode=True
l=importlib.machinery.SourceFileLoader("mg","ROOT/tools/measure/measure_gaps"); sp=importlib.util.spec_from_loader("mg",l); mg=importlib.util.module_from_spec(sp); l.exec_module(mg)
seed=sys.argv[1]; n=int(sys.argv[2])
import re,math
out=[]
lim={"fp64":2e10,"ieee_fp32":2e10,"fp32":3e10,"bf16_nt":1e11,"bf16_nn":1e11,"fp16":1e11,"fp8":1e11}
kinds=list(mg.KINDS)
rngs={k:random.Random(f"{seed} {k}") for k in kinds}
w={"fp64":1.3,"bf16_nt":1.2,"bf16_nn":1.2,"fp16":1.2,"fp32":1.2,"ieee_fp32":.8,"fp8":.6,"batch_fp32":.6,"batch_fp64":.6,"batch_bf16":.8,"batch_fp16":.4}
acc={k:0 for k in kinds}
while len(out)<n:
    for k in kinds:
        acc[k]+=w[k]
        while acc[k]>=1:
            acc[k]-=1
            while True:
                s=mg.draw_shape(rngs[k],k,True)
                m,nn,kk=map(int,re.match(r"(\d+)x(\d+)x(\d+)",s).groups()); b=int((re.search(r"batch=(\d+)",s) or [0,1])[1])
                if m*nn*kk*b<=lim.get(k,3e10): break
            out.append(s)
print("\n".join(out[:n]))
