#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/shaped_links.sh PROGRAM [PRESET LENGTH] - training across four hosts that are network
# namespaces of this machine, with links of 1 Gbit/s and 1 ms, started by mpirun over ssh: the files
# of one process, and the time of an update beside that of the same ranks over shared memory. Needs
# root, ip, sshd, Open MPI and tests/delayed_switch of the build.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
preset=${2:-small}
length=${3:-256}
switch=$(dirname "$program")/tests/delayed_switch
hosts="1 2 3 4"
name=tarn$$

skip() {
    echo "$1" && exit 77
}
[ "$(id -u)" = 0 ] || skip "only root can make network namespaces"
for command in ip sshd ssh ssh-keygen mpirun; do
    command -v $command >/dev/null || [ -x "/usr/sbin/$command" ] || skip "$command is not installed"
done
PATH=$PATH:/usr/sbin
[ -x "$switch" ] || skip "$switch is not built"
[ -c /dev/net/tun ] || skip "this machine has no TAP devices"
mpirun --version | grep -q 'Open MPI' || skip "mpirun is not Open MPI's"
ip netns add "$name-1" 2>/dev/null || skip "this machine cannot make network namespaces"

folder=$(mktemp -d)
chmod 755 "$folder"
clean_up() {
    [ -z "${switch_pid:-}" ] || kill "$switch_pid"
    for host in $hosts; do
        [ ! -e "$folder/pid$host" ] || kill "$(cat "$folder/pid$host")"
        ip netns del "$name-$host" 2>/dev/null
    done
    rm -rf "$folder"
}
trap clean_up EXIT
trap "exit 1" INT TERM

# ---- Hosts on a switch ----------------------------------------------------------------------

for host in 2 3 4; do
    ip netns add "$name-$host" || exit 1
done
# With the highest priority: it stands for hardware.
nice -n -20 "$switch" 1000 1000 $(printf "$name-%s " $hosts) &
switch_pid=$!
for host in $hosts; do
    tries=0
    until ip -n "$name-$host" link show wire >/dev/null 2>&1; do
        kill -0 $switch_pid && [ $((tries += 1)) -le 50 ] || exit 1
        sleep 0.1
    done
    ip -n "$name-$host" address add "10.77.0.$host/24" dev wire &&
        ip -n "$name-$host" link set wire mtu 9000 up && ip -n "$name-$host" link set lo up || exit 1
done

mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$folder/key" && ssh-keygen -q -t ed25519 -N '' -f "$folder/host"
cat >"$folder/ssh" <<END
#!/bin/sh
exec ssh -i "$folder/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
    -o LogLevel=ERROR "\$@"
END
chmod +x "$folder/ssh"
# on HOST COMMAND...: with a name of its own, or MPI would take the hosts for one.
on() {
    host=$1
    shift
    ip netns exec "$name-$host" unshare --uts sh -c "hostname $name-$host && exec \"\$@\"" sh "$@"
}
for host in $hosts; do
    on "$host" /usr/sbin/sshd -o ListenAddress="10.77.0.$host" -o HostKey="$folder/host" \
        -o AuthorizedKeysFile="$folder/key.pub" -o PidFile="$folder/pid$host" -o StrictModes=no \
        -o PermitRootLogin=yes -o PasswordAuthentication=no -o UsePAM=no -f /dev/null || exit 1
    echo "10.77.0.$host slots=1"
done >"$folder/hosts"

# ---- Runs -----------------------------------------------------------------------------------

OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_pml=ob1
LD_LIBRARY_PATH=$(dirname "$program")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe \
    OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_mpi_yield_when_idle OMPI_MCA_pml LD_LIBRARY_PATH

across() { # COMMAND...
    on 1 mpirun -n 4 --hostfile "$folder/hosts" --map-by node --mca plm_rsh_agent "$folder/ssh" \
        --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca oob_tcp_if_include 10.77.0.0/24 -x LD_LIBRARY_PATH \
        -x OMPI_MCA_mpi_yield_when_idle "$@" </dev/null
}

cd "$folder" || exit 1
train="$program train copy --preset tiny --length 64 --batch 8 --micro-batches 4 --steps 5
    --eval-every 0 --threads 1"
$train --out "$folder/one" >log 2>&1 || { cat log && exit 1; }
across $train --out "$folder/four" >log 2>&1 || { cat log && exit 1; }
cmp one/model.safetensors four/model.safetensors || exit 1
across $train --out "$folder/two" --sequence-parallel 2 --micro-batches 2 >log 2>&1 ||
    { cat log && exit 1; }
$train --out "$folder/cut" --sequence-chunks 8 --micro-batches 2 >log 2>&1 || { cat log && exit 1; }
cmp cut/model.safetensors two/model.safetensors || exit 1
echo "weights of four hosts are those of one process"

# strong JSON: seconds of an update by four ranks that share the batch.
strong() {
    sed -n 's/.*"mode":"strong","ranks":4.*"update_s":\([0-9.e-]*\),.*/\1/p' "$1"
}
bench="$program bench scale --preset $preset --batch 64 --length $length --repeat 5 --threads 1
    --json"
best=0
for turn in 1 2; do # in turns: the machine may be busy
    mpirun -n 4 $bench >near 2>log </dev/null || { cat log && exit 1; }
    across $bench >far 2>log || { cat log && exit 1; }
    share=$(echo "$(strong near) $(strong far)" | awk '{ print $1 / $2 }')
    echo "$preset, batch 64, length $length, 4 ranks: $(strong near) s over shared memory," \
        "$(strong far) s over links of 1 Gbit/s and 1 ms: $share of the speed"
    best=$(echo "$best $share" | awk '{ print ($2 > $1 ? $2 : $1) }')
done
echo "$best" | awk '{ exit !($1 >= 0.7) }' || { echo "less than 0.7 of the speed" && exit 1; }
