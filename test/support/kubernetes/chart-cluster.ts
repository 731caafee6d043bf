/**
 * A cluster on which helm installs the chart: a real control plane, and nodes that run the pods of the chart
 * as its templates say, each with its network, user, capabilities, files and token. Pods of other namespaces
 * are processes under a fake kubelet. In a real cluster kube-proxy, a DNS server and a container runtime do
 * what forwarders, /etc/hosts and namespaces of this machine do here; NetworkPolicies and limits are not
 * enforced, and the agents have declared GPUs in place of NVIDIA's driver.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSystemClock } from '../../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../../controller/adapters/system-random.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import {
  CONFIG_MAPS,
  type KubeApi,
  type KubeObject,
  NAMESPACES,
  PODS,
  type ResourceKind,
  RUNTIME_CLASSES,
  SECRETS,
} from '../../../operator/ports/kube-api.ts'
import { Reflector } from '../../../operator/reflector/reflector.ts'
import { afterEachFile } from '../endings.ts'
import { guardProgram } from '../../../gpu-server/guard/guard-program.ts'
import { until } from '../live-cluster.ts'
import { STACK_NAMESPACE } from './account.ts'
import { helmOn } from './chart.ts'
import { ChartKubelet } from './chart-kubelet.ts'
import { ControlPlane } from './control-plane.ts'
import { FakeKubelet } from './fake-kubelet.ts'
import { addReadyNode, removePod, sendHeartbeats } from './nodes.ts'
import { PodNetwork } from './pod-network.ts'
import type { StackPodObject } from './pod-object.ts'
import { ServiceProxy } from './service-proxy.ts'

const CONTROL_NODE = 'control'
export const GPU_NODE_NAME = 'gpu'
const NODES = [CONTROL_NODE, GPU_NODE_NAME]
const INVENTORY = 'inventory.json'
/** Paths of a node that the chart mounts. */
const STATE_PATH = '/var/lib/headroom/agent'
const CGROUP_PATH = '/sys/fs/cgroup'

const open = new Set<ChartCluster>()
afterEachFile(() => Promise.all([...open].map((cluster) => cluster.stop())))

export class ChartCluster {
  readonly plane: ControlPlane
  readonly api: KubeApi
  readonly kubelets = new Map<string, FakeKubelet>()
  readonly #network: PodNetwork
  readonly #clock = createSystemClock()
  readonly #reflectors: Reflector[] = []
  readonly #pods: Reflector
  readonly #found: Readonly<Record<'Secret' | 'ConfigMap', Reflector>>
  readonly #ending = new AbortController()
  readonly #proxy: ServiceProxy
  readonly stack: ChartKubelet
  #heartbeats: Promise<void> = Promise.resolve()

  private constructor(plane: ControlPlane, network: PodNetwork) {
    this.plane = plane
    this.#network = network
    const api = (this.api = plane.client())
    this.#pods = this.#reflected(PODS)
    this.#found = { Secret: this.#reflected(SECRETS), ConfigMap: this.#reflected(CONFIG_MAPS) }
    const hosts = join(plane.folder, 'hosts')
    writeFileSync(hosts, '')
    const { hostname: host, port } = new URL(plane.server)
    this.#proxy = new ServiceProxy({
      ...{ api, apiServer: { host, port: Number(port) }, onHosts: (lines) => writeFileSync(hosts, lines) },
      reflected: (kind, onChange) => this.#reflected(kind, onChange),
    })
    for (const node of NODES) {
      const pods = (): readonly Pod[] =>
        this.pods.filter(({ metadata: { namespace } }) => namespace !== STACK_NAMESPACE)
      const remove = ({ metadata }: Pod): Promise<void> => removePod(plane, metadata)
      this.kubelets.set(node, new FakeKubelet({ api, node, pods, remove }))
    }
    this.stack = new ChartKubelet({
      ...{ api, plane, network, hosts, folder: join(plane.folder, 'pods') },
      pods: () =>
        this.pods.filter(({ metadata: { namespace } }) => namespace === STACK_NAMESPACE) as StackPodObject[],
      found: (kind, name) => this.#found[kind].objects.get(`${STACK_NAMESPACE}/${name}`),
      hostPath: (node, path) => this.#hostPath(node, path),
      argsOn: (_, args) => args.flatMap((each) => (each === '--device=nvidia' ? DECLARED : [each])),
    })
  }

  /** @param gpusMib VRAM of each GPU of the node `gpu`; the node `control` has none. */
  static async start(gpusMib: readonly number[]): Promise<ChartCluster> {
    const network = PodNetwork.start()
    const services = { range: network.serviceRange, apiAddress: network.apiAddress }
    const plane = await ControlPlane.start({ services })
    const cluster = new ChartCluster(plane, network)
    open.add(cluster)
    try {
      await cluster.#start(gpusMib)
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  /** All pods of the cluster, as last seen. */
  get pods(): readonly Pod[] {
    return [...this.#pods.objects.values()] as unknown as readonly Pod[]
  }

  pod(name: string): Pod | undefined {
    return this.pods.find(({ metadata }) => metadata.namespace === 'default' && metadata.name === name)
  }

  /** The pod of a ReplicaSet that is not being deleted. */
  podOf(replicaSet: string): Pod | undefined {
    return this.pods.find(
      ({ metadata: { name = '', namespace, deletionTimestamp } }) =>
        namespace === 'default' && deletionTimestamp === undefined && name.startsWith(`${replicaSet}-`),
    )
  }

  /** T: stopped; null: it does not run. */
  stateOf(pod: Pod | undefined): string | null {
    return pod === undefined ? null : (this.kubelets.get(pod.spec.nodeName ?? '')?.stateOf(pod) ?? null)
  }

  /** Its pid; null: it does not run. */
  processOf(pod: Pod): number | null {
    return this.kubelets.get(pod.spec.nodeName ?? '')?.processOf(pod) ?? null
  }

  helm(...args: readonly string[]): Promise<string> {
    return helmOn(this.plane, ...args, '--namespace', STACK_NAMESPACE)
  }

  async stop(): Promise<void> {
    open.delete(this)
    this.#ending.abort()
    await this.stack.stop()
    await Promise.all([...this.kubelets.values()].map((kubelet) => kubelet.stop()))
    await this.#heartbeats
    await Promise.all(this.#reflectors.map((reflector) => reflector.stop()))
    await this.#proxy.close()
    this.#clock.stop()
    await this.plane.stop()
    this.#network.close()
  }

  async #start(gpusMib: readonly number[]): Promise<void> {
    const { plane, api } = this
    for (const reflector of this.#reflectors) reflector.start()
    // The image has it.
    await guardProgram()
    // The chart brings them.
    await plane.kubectl(['delete', 'crd', '--all'])
    await plane.startControllerManager()
    await plane.startDefaultScheduler()
    for (const name of NODES)
      await addReadyNode(api, {
        ...{ name, isGpuNode: name === GPU_NODE_NAME },
        labels: { 'kubernetes.io/hostname': name },
      })
    this.#heartbeats = sendHeartbeats(api, () => NODES, this.#ending.signal)
    const state = this.#hostPath(GPU_NODE_NAME, STATE_PATH)
    mkdirSync(state, { recursive: true })
    const gpus = gpusMib.map((vram_mib) => ({ model: 'X', vram_mib }))
    writeFileSync(join(state, INVENTORY), JSON.stringify({ gpus, host_swap_mib: 1_048_576 }))
    // As NVIDIA's operator makes it.
    await api.create(RUNTIME_CLASSES, { metadata: { name: 'nvidia' }, handler: 'nvidia' } as KubeObject)
    // The agents are privileged pods.
    const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' }
    await api.create(NAMESPACES, { metadata: { name: STACK_NAMESPACE, labels } })
    await until('all objects are listed', () => this.#reflectors.every(({ isSynced }) => isSynced))
  }

  #reflected(kind: ResourceKind, onChange = (): void => {}): Reflector {
    const random = createSystemRandom().stream(kind.plural)
    const reflector = new Reflector({ api: this.api, kind, clock: this.#clock, random, onChange })
    this.#reflectors.push(reflector)
    return reflector
  }

  #hostPath(node: string, path: string): string {
    if (path === CGROUP_PATH) return this.kubelets.get(node)?.cgroups ?? path
    return join(this.plane.folder, 'nodes', node, path)
  }
}

const DECLARED = ['--device=process', `--inventory=${STATE_PATH}/${INVENTORY}`, '--idle-after=1s']
