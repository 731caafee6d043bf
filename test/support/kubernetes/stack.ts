/**
 * The whole stack on a real control plane: two operators and two admissions behind Services, two schedulers
 * with the extender, the default scheduler, the controller manager, and nodes whose kubelets run pods as
 * processes under real agents. Each component is started again after its end.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSystemClock } from '../../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../../controller/adapters/system-random.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { LEADER_LABEL, POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { type KubeApi, LEASES, PODS } from '../../../operator/ports/kube-api.ts'
import { Reflector } from '../../../operator/reflector/reflector.ts'
import { afterEachFile } from '../endings.ts'
import { freePort } from '../free-port.ts'
import { FROM_SOURCES_ENV } from '../headroom-command.ts'
import { headroom, until } from '../live-cluster.ts'
import { STACK_NAMESPACE } from './account.ts'
import { Component } from './component.ts'
import {
  admissionArguments,
  agentArguments,
  callerCertificates,
  operatorArguments,
  operatorEnv,
  prepareAdmission,
  prepareOperator,
  untilAdmitted,
} from './components.ts'
import { ControlPlane, type ControlPlaneOptions } from './control-plane.ts'
import { FakeKubelet } from './fake-kubelet.ts'
import { addReadyNode, type NodePlan, removePod, sendHeartbeats } from './nodes.ts'
import { aPod } from './objects.ts'
import { Service } from './service.ts'

export interface StackNode {
  readonly name: string
  /** VRAM of each GPU. */
  readonly gpusMib: readonly number[]
  /** Name of the profile by which swaps take time. */
  readonly swap?: string
}

export interface StackOptions extends ControlPlaneOptions {
  readonly nodes: readonly StackNode[]
  /** Fields of the ClusterGPUPolicy. */
  readonly policy?: object
  /** More arguments of the operators. */
  readonly operatorOptions?: readonly string[]
  /** URL of the API server for each operator. Absent: the real one. */
  readonly serverOf?: (plane: ControlPlane, replica: number) => Promise<string>
}

export interface StackPod {
  readonly name: string
  readonly vram: string
  readonly command?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: object
}

const REPLICAS = [0, 1] as const
/** Its pods are components of the stack, and no kubelet of ours runs them. */
const CONTROL_NODE = 'control'
const HOST_SWAP_MIB = 1_048_576
const START_WITHIN_MS = 120_000

const open = new Set<Stack>()
afterEachFile(() => Promise.all([...open].map((stack) => stack.stop())))

export class Stack {
  readonly plane: ControlPlane
  readonly api: KubeApi
  readonly etcd: Component
  readonly apiServer: Component
  readonly operators: Component[] = []
  readonly admissions: Component[] = []
  readonly schedulers: Component[] = []
  /** By node. */
  readonly agents = new Map<string, Component>()
  readonly kubelets = new Map<string, FakeKubelet>()
  readonly #clock = createSystemClock()
  readonly #pods: Reflector
  readonly #services: Service[] = []
  readonly #nodes: string[] = []
  readonly #ending = new AbortController()
  #heartbeats: Promise<void> = Promise.resolve()

  private constructor(plane: ControlPlane) {
    this.plane = plane
    this.api = plane.client()
    this.etcd = new Component(plane.etcd, null)
    this.apiServer = new Component(plane.apiServer, null)
    this.#pods = new Reflector({
      ...{ api: this.api, kind: PODS, clock: this.#clock, onChange: () => {} },
      random: createSystemRandom().stream('pods'),
    })
  }

  /** Resolves once a pod with the label would be admitted, and an operator and all agents are ready. */
  static async start(options: StackOptions): Promise<Stack> {
    const stack = new Stack(await ControlPlane.start(options))
    open.add(stack)
    try {
      await stack.#start(options)
      return stack
    } catch (error) {
      process.stderr.write(stack.output)
      await stack.stop()
      throw error
    }
  }

  /** All pods of the cluster, as last seen. */
  get pods(): readonly Pod[] {
    return [...this.#pods.objects.values()] as unknown as readonly Pod[]
  }

  pod(name: string, namespace = 'default'): Pod | undefined {
    return this.#pods.objects.get(`${namespace}/${name}`) as unknown as Pod | undefined
  }

  /** The operator that holds the Lease; null: none does, or the API server is away. */
  async leader(): Promise<Component | null> {
    const key = { namespace: STACK_NAMESPACE, name: 'headroom-operator' }
    const lease = await this.api.get(LEASES, key).catch(() => null)
    const { holderIdentity } = (lease?.['spec'] ?? {}) as { readonly holderIdentity?: string }
    return this.operators.find(({ name }) => name === holderIdentity) ?? null
  }

  async addPod({ name, vram, command, annotations = {}, spec = {} }: StackPod): Promise<Pod> {
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: vram, ...annotations })
    const containers = [{ ...pod.spec.containers[0], ...(command === undefined ? {} : { command }) }]
    const metadata = { ...pod.metadata, name }
    return (await this.api.create(PODS, {
      ...pod,
      metadata,
      spec: { restartPolicy: 'Never', terminationGracePeriodSeconds: 5, containers, ...spec },
    })) as unknown as Pod
  }

  /** A node that stays ready. It has no kubelet and no agent unless the stack was started with it. */
  async addNode(plan: NodePlan): Promise<void> {
    await addReadyNode(this.api, { ...plan, labels: { 'kubernetes.io/hostname': plan.name, ...plan.labels } })
    this.#nodes.push(plan.name)
  }

  /** The last lines of all components. */
  get output(): string {
    return this.plane.output
  }

  async stop(): Promise<void> {
    open.delete(this)
    this.#ending.abort()
    const components = [...this.operators, ...this.admissions, ...this.schedulers, ...this.agents.values()]
    await Promise.all(components.map((component) => component.stop()))
    await Promise.all([...this.kubelets.values()].map((kubelet) => kubelet.stop()))
    await Promise.all(this.#services.map((service) => service.close()))
    await this.#heartbeats
    await this.#pods.stop()
    this.#clock.stop()
    await Promise.all([this.apiServer.stop(), this.etcd.stop()])
    await this.plane.stop()
  }

  async #start(options: StackOptions): Promise<void> {
    const { nodes, policy } = options
    const { plane, api } = this
    this.#pods.start()
    await until('the pods are listed', () => this.#pods.isSynced)
    await this.#startAdmissions()
    const ports = await this.#startOperators(options)
    await plane.startDefaultScheduler()
    await plane.startControllerManager()
    for (const { name } of [{ name: CONTROL_NODE }, ...nodes])
      await this.addNode({ name, isGpuNode: name !== CONTROL_NODE })
    this.#heartbeats = sendHeartbeats(api, () => this.#nodes, this.#ending.signal)
    for (const replica of REPLICAS) await this.#addOperatorPod(`headroom-operator-${replica}`)
    await until('an operator is ready', () => this.operators.some(({ isReady }) => isReady), START_WITHIN_MS)
    const certificates = await callerCertificates(plane)
    for (const member of await plane.startScheduler(ports.extender, certificates, REPLICAS.length))
      this.schedulers.push(new Component(member, null))
    for (const node of nodes) await this.#startNode(node, ports.agents)
    if (policy !== undefined) {
      const kind = { apiVersion: 'headroom.dev/v1alpha1', kind: 'ClusterGPUPolicy' }
      await plane.apply([{ ...kind, metadata: { name: 'default' }, spec: policy }])
    }
    const agents = [...this.agents.values()]
    await until('all agents are heard', () => agents.every(({ isReady }) => isReady), START_WITHIN_MS)
    await untilAdmitted(api, () => this.output)
  }

  async #startAdmissions(): Promise<void> {
    const port = await freePort()
    const kubeconfig = await prepareAdmission(this.plane, port)
    const endpoints = new Map<Component, number>()
    for (const replica of REPLICAS) {
      const own = { port: await freePort(), adminPort: await freePort() }
      const component = this.#component(
        `headroom-admission-${replica}`,
        admissionArguments(kubeconfig, own),
        own,
      )
      endpoints.set(component, own.port)
      this.admissions.push(component)
    }
    await this.#serve(port, endpoints, ({ isReady }) => isReady)
  }

  async #startOperators({
    operatorOptions = [],
    serverOf = ({ server }) => Promise.resolve(server),
  }: StackOptions): Promise<{ readonly extender: number; readonly agents: number }> {
    const { plane } = this
    const ports = { extender: await freePort(), agents: await freePort() }
    const kubeconfig = await prepareOperator(plane)
    const [extenders, agents] = [new Map<Component, number>(), new Map<Component, number>()]
    for (const replica of REPLICAS) {
      const name = `headroom-operator-${replica}`
      const own = { port: await freePort(), agentsPort: await freePort(), adminPort: await freePort() }
      const config = join(plane.folder, `${name}.kubeconfig`)
      const text = readFileSync(kubeconfig, 'utf8').replaceAll(plane.server, await serverOf(plane, replica))
      writeFileSync(config, text)
      const command = [...operatorArguments(config, own), ...operatorOptions]
      const component = this.#component(name, command, { ...own, env: operatorEnv() })
      extenders.set(component, own.port)
      agents.set(component, own.agentsPort)
      this.operators.push(component)
    }
    const isSelected = ({ name, isReady }: Component): boolean =>
      isReady && this.pod(name, STACK_NAMESPACE)?.metadata.labels?.[LEADER_LABEL] === 'true'
    await this.#serve(ports.extender, extenders, isSelected)
    await this.#serve(ports.agents, agents, isSelected)
    return ports
  }

  async #startNode({ name, gpusMib, swap }: StackNode, operatorPort: number): Promise<void> {
    const kubelet = new FakeKubelet({
      ...{ api: this.api, node: name, pods: () => this.pods },
      remove: ({ metadata }) => removePod(this.plane, metadata),
    })
    this.kubelets.set(name, kubelet)
    const profile = swap === undefined ? {} : { swap }
    const gpus = gpusMib.map((vram_mib) => ({ model: 'X', vram_mib, ...profile }))
    const plan = { node: name, inventory: { gpus, host_swap_mib: HOST_SWAP_MIB }, cgroups: kubelet.cgroups }
    const own = { operatorPort, adminPort: await freePort() }
    const command = await agentArguments(this.plane, { ...plan, ...own })
    this.agents.set(name, this.#component(`headroom-agent-${name}`, command, own))
  }

  #component(
    name: string,
    command: readonly string[],
    { adminPort, env = {} }: { readonly adminPort: number; readonly env?: Readonly<Record<string, string>> },
  ): Component {
    const all = { ...FROM_SOURCES_ENV, ...env, POD_NAME: name, POD_NAMESPACE: STACK_NAMESPACE }
    return new Component(this.plane.addMember(name, headroom(...command), all), adminPort)
  }

  async #serve(
    port: number,
    endpoints: ReadonlyMap<Component, number>,
    isSelected: (component: Component) => boolean,
  ): Promise<void> {
    const ports = (): readonly number[] =>
      [...endpoints].filter(([component]) => isSelected(component)).map(([, endpoint]) => endpoint)
    this.#services.push(await Service.start(ports, port))
  }

  /** The operator labels its pod while it leads. */
  async #addOperatorPod(name: string): Promise<void> {
    const labels = { 'app.kubernetes.io/name': 'headroom', 'app.kubernetes.io/component': 'operator' }
    const metadata = { name, namespace: STACK_NAMESPACE, labels }
    const containers = [{ name: 'operator', image: 'registry.example/headroom:1' }]
    await this.api.create(PODS, { metadata, spec: { nodeName: CONTROL_NODE, containers } })
  }
}
