import sys,math,statistics,collections
shapes=[];cur=None
for l in open(sys.argv[1]):
    w=l.split()
    if not w: continue
    if w[0]=="S": cur={"s":w[1],"r":{},"p":{},"c":None}; shapes.append(cur)
    elif w[0] in "CR" and len(w)==5:
        if w[0]=="C": cur["c"]=w[1]
        if float(w[3])>0: cur["r"][w[1]]=(float(w[3]),float(w[2]))
    elif w[0]=="P" and float(w[2])>0: cur["p"][w[1]]=float(w[2])
def kind(t):
    ty="fp64" if "fp64" in t else "fp8" if "fp8" in t else "bf16" if ":bf16" in t else "fp16" if "fp16" in t else "ieee" if "ieee" in t else "fp32"
    return ("b_" if "batch" in t else "")+ty
g=statistics.geometric_mean
k=collections.defaultdict(list)
for s in shapes:
    if s["c"] in s["r"]: k[kind(s["s"])].append(s)
for n,l in k.items():
    reg=[s["r"][s["c"]][0]/min(t[0] for t in s["r"].values()) for s in l]
    ra=[min(s["p"].values())/s["r"][s["c"]][0] for s in l if s["p"]]; rb=[min(s["p"].values())/min(t[0] for t in s["r"].values()) for s in l if s["p"]]
    print(f"{n:8} {len(l):4} regret {g(reg):.3f} ratio {g(ra) if ra else 0:.2f} best {g(rb) if rb else 0:.2f} <.95 {sum(x<.95 for x in ra)}/{sum(x<.95 for x in rb)} <.85 {sum(x<.85 for x in ra)}/{sum(x<.85 for x in rb)} of {len(ra)}")
sp=set(open("special.txt").read().split())
for s in shapes[:len(sp)]:
    b=sorted((t[0],n.replace("cuda_","")) for n,t in s["r"].items())
    print(s["s"],"C",(s["c"] or "")[5:],s["r"].get(s["c"],("-",))[0],"best",b[:2],s["p"])
