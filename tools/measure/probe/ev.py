#!/usr/bin/python3
"""ev.py PROBE_OUT... [--chip h100] [--root R]: regret of the model's choice, by kind."""
import sys,re,math,statistics,importlib.machinery,importlib.util,tempfile,argparse,json,collections
a=argparse.ArgumentParser(); a.add_argument("files",nargs="+"); a.add_argument("--chip",default="h100"); a.add_argument("--root",default="ROOT"); a.add_argument("-v",type=float,default=0); a.add_argument("--kind"); a.add_argument("--json"); a.add_argument("--figures")
a=a.parse_args()
def load(paths):
    shapes=[];cur=None
    for p in paths:
        for l in open(p):
            w=l.split()
            if not w: continue
            if w[0]=="S": cur={"shape":w[1],"rows":{},"peers":{},"chosen":None}; shapes.append(cur)
            elif w[0] in "CR" and cur is not None and len(w)==5:
                if w[0]=="C": cur["chosen"]=w[1]
                if float(w[3])>0: cur["rows"][w[1]]=(float(w[3]),float(w[4]),float(w[2]))
            elif w[0]=="P" and float(w[2])>0: cur["peers"][w[1]]=float(w[2])
    return [s for s in shapes if s["rows"] and s["chosen"] in s["rows"]]
def kind(s):
    t=s["shape"]; b="batch_" if ":batch=" in t else ""
    ty="fp64" if "fp64" in t else "bf16" if ":bf16" in t and "fp8" not in t else "fp16" if "fp16" in t else "fp8" if "fp8" in t else "ieee" if "ieee" in t else "fp32"
    if ty=="bf16" and not b: ty+="_nt" if ":nt" in t else "_nn"
    return b+ty
shapes=load(a.files)
if a.kind: shapes=[s for s in shapes if kind(s).startswith(a.kind)]
l=importlib.machinery.SourceFileLoader("fm",a.root+"/tools/measure/fit_model"); sys.dont_write_bytecode=True
sp=importlib.util.spec_from_loader("fm",l); fm=importlib.util.module_from_spec(sp); sys.modules["fm"]=fm; l.exec_module(fm)
d=tempfile.TemporaryDirectory(); m=fm.Model(d.name,a.chip)
if a.json:
    json.dump({"records":[{"kind":"kernel","name":n,"shape":s["shape"],"median_s":t[0]*1e-6} for s in shapes for n,t in s["rows"].items()]},open(a.json,"w")); sys.exit()
res=collections.defaultdict(list)
ids=[(i,n) for i,s in enumerate(shapes) for n in s["rows"] if m.add((s["shape"],n))]
if a.figures:
    fig=fm.read_figures(open(a.figures).read()); vals=[float(v) for f in fig for v in f.values]
    for i,v in enumerate(vals): m.values[i]=v
pred={}
for (i,n),v in zip(ids,m.predict()): pred[i,n]=v
for i,s in enumerate(shapes):
    p={n:pred.get((i,n),0)*1e6 for n in s["rows"]}
    q={n:v for n,v in p.items() if v>0 and "warp_mma" not in n and "warpgroup" not in n}
    new=min(q,key=q.get); best=min(s["rows"],key=lambda n:s["rows"][n][0])
    tb=s["rows"][best][0]; tc=s["rows"][s["chosen"]][0]; tn=s["rows"][new][0]; peer=min(s["peers"].values()) if s["peers"] else 0
    r=dict(shape=s["shape"],old=tc/tb,new=tn/tb,ratio_old=peer/tc,ratio_new=peer/tn,ratio_best=peer/tb,chosen=s["chosen"],newrow=new,best=best,p=p,t=s["rows"],peer=peer)
    res[kind(s)].append(r)
g=lambda x: statistics.geometric_mean(x) if x else 0
print(f"{'kind':12} n  regret recorded/now | ratio to peer rec/now/best   | <0.95 rec/now/best  <0.85 rec/now/best")
tot=[]
for k,l in res.items():
    tot+=l; pr=[r for r in l if r["peer"]]
    c=lambda key,lim:sum(r[key]<lim for r in pr)
    print(f"{k:12} {len(l):4} {g([r['old'] for r in l]):.3f} {g([r['new'] for r in l]):.3f} | {g([r['ratio_old'] for r in pr]):.2f} {g([r['ratio_new'] for r in pr]):.2f} {g([r['ratio_best'] for r in pr]):.2f} ({len(pr)}) | {c('ratio_old',.95)} {c('ratio_new',.95)} {c('ratio_best',.95)}   {c('ratio_old',.85)} {c('ratio_new',.85)} {c('ratio_best',.85)}")
print("all regret",g([r['old'] for r in tot]),g([r['new'] for r in tot]), "over 1.05:",sum(r['old']>1.05 for r in tot),sum(r['new']>1.05 for r in tot))
if a.v:
    sh=lambda n:n.replace("cuda_","").replace("_sm90a","+").replace("_sm80","").replace("_sm75","")
    for k,l in res.items():
        for r in sorted(l,key=lambda r:-r["new"]):
            if r["new"]<a.v: continue
            print(f"{r['new']:.2f} ratio {r['ratio_new']:.2f}/{r['ratio_best']:.2f} {r['shape']} peer {r['peer']:.1f}: "+" ".join(f"{'*' if n==r['newrow'] else ''}{sh(n)} {t[0]:.1f}({r['p'][n]:.1f})" for n,t in sorted(r['t'].items(),key=lambda x:x[1][0])[:7]))
