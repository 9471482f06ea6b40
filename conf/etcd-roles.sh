#!/bin/sh
# Users and roles of etcd for Pipette: who may write what below the prefix. docs/nodes.md says why. Each user is the
# common name (CN) of a client's certificate, so no passwords are needed: etcd has to run with --client-cert-auth.
#
#   etcd-roles.sh cluster OPERATOR NETWORKS   once, before the first node joins; NETWORKS as in the sample below
#   etcd-roles.sh node NAME [USER]            for each node, before its agent starts; USER (default: NAME) is its CN
#   etcd-roles.sh leave NAME [USER]           after "pipette nodes release NAME"
#   etcd-roles.sh enable                      last: from here on etcd asks for a name, and only "root" may do all of this
#
#   etcd-roles.sh cluster pipette-operator '{"networks":[{"cidr":"10.128.0.0/14","hostBits":9}]}'
#
# It may be run again. etcdctl (of etcd 3.4 or newer) takes where etcd is, and who you are, from ETCDCTL_ENDPOINTS,
# ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY; PREFIX is "nodes.registry.prefix" of agent.yaml.
set -eu
export ETCDCTL_API=3
base="${PREFIX:-/pipette}/v1"

role() { etcdctl role get "$1" >/dev/null 2>&1 || etcdctl role add "$1"; }
user() { etcdctl user get "$1" >/dev/null 2>&1 || etcdctl user add "$1" --no-password; }
may() { etcdctl role grant-permission "$@" >/dev/null; }

case "${1:-}" in
cluster)
  # People: "pipette nodes" and "pipette tenants", with a copy of agent.yaml that names their certificate.
  role pipette-operator
  may pipette-operator --prefix=true readwrite "$base/"
  user "$2"
  etcdctl user grant-role "$2" pipette-operator
  # Every node reads all of it, and takes subnets and VNIDs that are free.
  role pipette-nodes
  may pipette-nodes --prefix=true read "$base/"
  for part in subnets vnids vnid-ids tickets; do may pipette-nodes --prefix=true readwrite "$base/$part/"; done
  # Nodes cannot say what the networks are; the first one that joined without users has done so already.
  value=$(printf %s "$3" | sed 's/[\\"]/\\&/g')
  printf 'create("%s") = "0"\n\nput %s "%s"\n\n\n' "$base/config" "$base/config" "$value" | etcdctl txn >/dev/null
  ;;
node)
  # Its own record and its sign of life, and nobody else's.
  role "pipette-node-$2"
  may "pipette-node-$2" readwrite "$base/nodes/$2"
  may "pipette-node-$2" readwrite "$base/alive/$2"
  user "${3:-$2}"
  etcdctl user grant-role "${3:-$2}" pipette-nodes
  etcdctl user grant-role "${3:-$2}" "pipette-node-$2"
  ;;
leave)
  etcdctl user delete "${3:-$2}"
  etcdctl role delete "pipette-node-$2"
  ;;
enable)
  role root
  user root
  etcdctl user grant-role root root
  etcdctl auth enable
  ;;
*)
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
