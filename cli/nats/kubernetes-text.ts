/**
 * The manifests of one GPU server on Kubernetes: its key, and a workload for its node only.
 * deploy/kubernetes/gpu-server.yaml shows an example.
 */

export interface KubernetesNode {
  /** The name in `kubectl get nodes`. */
  readonly name: string
  /** Set when it does not follow from the name. */
  readonly nodeId: string | null
}

/** A node name is a DNS subdomain (Kubernetes, "Object names and IDs"), shortened by our own prefix. */
const NODE_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,198}[a-z0-9])?$/

/** Returns the name of a party that is not a node, else undefined. */
export function whyNoKubernetesName(name: string): string | undefined {
  return NODE_NAME.test(name) ? undefined : name
}

/** @param seed of the key; a placeholder in the example */
export function gpuServerManifest({ name, nodeId }: KubernetesNode, seed: string): string {
  const workload = `headroom-gpu-server-${name}`
  return `${secretText(name, workload, seed)}---
${workloadText(name, workload)}${containerText(name, nodeId)}${volumesText(workload)}`
}

function secretText(name: string, workload: string, seed: string): string {
  return `# The GPU server of node ${name}, and its key, which is valid for that node only.
# Made by \`headroom nats config --kubernetes\`.
apiVersion: v1
kind: Secret
metadata:
  name: ${workload}-key
  namespace: headroom-gpu
type: Opaque
stringData:
  node.nk: ${seed}
`
}

function workloadText(name: string, workload: string): string {
  return `apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: ${workload}
  namespace: headroom-gpu
  labels: { app: headroom-gpu-server }
spec:
  selector:
    matchLabels: { app: headroom-gpu-server, headroom-node: '${labelOf(name)}' }
  # A new version ends the tasks of a node: an operator decides when, by deleting its pod.
  updateStrategy:
    type: OnDelete
  template:
    metadata:
      labels: { app: headroom-gpu-server, headroom-node: '${labelOf(name)}' }
    spec:
      runtimeClassName: nvidia
      nodeSelector: { kubernetes.io/hostname: '${name}' }
      tolerations:
        - { key: nvidia.com/gpu, operator: Exists, effect: NoSchedule }
      automountServiceAccountToken: false
      enableServiceLinks: false
      # The driver uses the host's process IDs. Each task is a separate user and cannot read other processes.
      hostPID: true
      # max_stop_grace_seconds plus 15 s.
      terminationGracePeriodSeconds: 315
      securityContext:
        runAsUser: 0
        runAsGroup: 0
        seccompProfile: { type: RuntimeDefault }
`
}

function containerText(name: string, nodeId: string | null): string {
  const id = nodeId === null ? '' : `            - { name: NODE_ID, value: ${nodeId} }\n`
  return `      containers:
        - name: gpu-server
          image: headroom-gpu-server:0.1.0
          args: [gpu-server, --device, nvidia, --allow-exec, --stop-tasks]
          env:
            - { name: NODE_NAME, value: '${name}' }
${id}            - name: NODE_ADDRESS
              valueFrom: { fieldRef: { fieldPath: status.hostIP } }
            - { name: NODE_STATE_DIR, value: /var/lib/headroom }
            - { name: CONTROLLER_NATS_URL, value: 'nats://headroom-broker.headroom.svc:4222' }
            - { name: CONTROLLER_NATS_NKEY_FILE, value: /etc/headroom/key/node.nk }
          resources:
            requests: { cpu: 500m, memory: 1Gi }
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            # For users of tasks, their folders and signals, and the driver's checkpoints.
            # SYS_ADMIN: for their PID namespaces.
            capabilities: { drop: [ALL], add: [SETUID, SETGID, CHOWN, KILL, SYS_PTRACE, SYS_ADMIN] }
          volumeMounts:
            - { name: state, mountPath: /var/lib/headroom }
            - { name: key, mountPath: /etc/headroom/key, readOnly: true }
            - { name: tmp, mountPath: /tmp }
`
}

function volumesText(workload: string): string {
  return `      volumes:
        # Boot counter, seen attempts, outbox: must outlast the pod.
        - name: state
          hostPath: { path: /var/lib/headroom-gpu-server, type: DirectoryOrCreate }
        - name: key
          secret: { secretName: ${workload}-key, defaultMode: 256 } # 0400
        - name: tmp
          emptyDir: {}
`
}

const MAX_LABEL_LENGTH = 63

/** A label's value is shorter than a name may be; the node selector is exact anyway. */
function labelOf(name: string): string {
  return name.slice(0, MAX_LABEL_LENGTH).replace(/[^a-z0-9]+$/, '')
}
