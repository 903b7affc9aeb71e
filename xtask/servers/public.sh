# As root of a user namespace with a network and mounts of its own:
#   public.sh UID GID HOSTS PAGES ADDRESS COMMAND...
# Behind a link, in a second network namespace, ADDRESS serves the directory PAGES on port 80. HOSTS becomes /etc/hosts. The
# command runs as the given user.
set -eu
uid=$1 gid=$2 hosts=$3 pages=$4 address=$5
shift 5
ip link set lo up
setpriv --pdeathsig KILL unshare --net sh -c '
  until ip link set far up 2>/dev/null; do sleep 0.02; done
  ip link set lo up
  ip addr add "$2/32" dev far
  ip route add 10.99.0.1/32 dev far
  exec python3 -m http.server 80 --bind "$2" --directory "$1"
' sh "$pages" "$address" </dev/null >/dev/null 2>&1 &
other=$!
until [ "$(readlink "/proc/$other/ns/net")" != "$(readlink "/proc/$$/ns/net")" ]; do sleep 0.02; done
ip link add name near type veth peer name far netns "$other"
ip addr add 10.99.0.1/32 dev near
ip link set near up
ip route add default dev near
mount --bind "$hosts" /etc/hosts
until python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], 80), 1)' "$address" 2>/dev/null; do sleep 0.05; done
exec unshare --user --map-user "$uid" --map-group "$gid" -- "$@"
