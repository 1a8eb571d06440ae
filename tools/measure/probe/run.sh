export LD_LIBRARY_PATH=$PWD
python3 - <<'P' > peers.env
import glob
for p in glob.glob("/opt/*/.venv/lib/python3*/site-packages/nvidia/cu13/lib")+glob.glob("/usr/local/lib/python3*/*/nvidia/cu13/lib"):
    print("export TILEGEMM_CUBLAS="+p); break
P
. ./peers.env; echo "peers $TILEGEMM_CUBLAS"
(timeout 8 ./test_rows fp64 cuda 100 cuda_dmma; timeout 7 ./test_rows fp32 cuda 60 cuda_bf16) 2>&1 | grep -E "passed|fail|FAIL|rror" | head -30
timeout 52 ./probe shapes.txt ${SECONDS_OF_PROBE:-40} $OUT/gaps3.log 3 9 2>$OUT/err.txt; tail -3 $OUT/err.txt
python3 summary.py $OUT/gaps3.log | cut -c1-230 | head -c 5000
