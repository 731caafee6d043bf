/** One pod of the chart on its node: its network, its files, its only container and the probes of that. */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import type { Probe } from '../../../operator/contract/kubernetes.ts'
import type { KubeObject } from '../../../operator/ports/kube-api.ts'
import type { ControlPlane } from './control-plane.ts'
import { environmentOf } from './fake-kubelet.ts'
import { startContainer } from './pod-container.ts'
import { PodFiles } from './pod-files.ts'
import type { PodAddress, PodNetwork } from './pod-network.ts'
import type { StackContainer, StackPodObject } from './pod-object.ts'

const RESTART_AFTER_MS = 1_000
/** A container that is not ready is probed more often than its probe says. */
const UNREADY_EVERY_MS = 500

export interface ChartPodOptions {
  readonly plane: ControlPlane
  readonly pod: StackPodObject
  readonly network: PodNetwork
  /** For all pods. */
  readonly folder: string
  readonly found: (kind: 'Secret' | 'ConfigMap', name: string) => KubeObject | undefined
  readonly hostPath: (node: string, path: string) => string
  /** What this machine lacks; the other arguments are those of the chart. */
  readonly argsOn: (node: string, args: readonly string[]) => readonly string[]
  /** File with the names of the Services. */
  readonly hosts: string
  readonly onNote: (line: string) => void
  readonly onOutput?: (text: string) => void
  readonly onEnd?: (how: string) => void
}

type Phase = 'Pending' | 'Running' | 'Succeeded' | 'Failed'

export interface ChartPodStatus {
  readonly phase: Phase
}

interface ProbeState {
  failures: number
  nextAt: number
  isAsking: boolean
}

export class ChartPod {
  readonly name: string
  readonly #options: ChartPodOptions
  readonly #container: StackContainer
  readonly #folder: string
  readonly #files: PodFiles
  readonly #startedAt = new Date().toISOString()
  #network: PodAddress | null = null
  #child: ChildProcess | null = null
  #starts = 0
  #startsAt = 0
  #phase: Phase = 'Pending'
  #exitCode: number | null = null
  #isReady = false
  #toldAt: number | null = null
  #reported = ''
  readonly #liveness: ProbeState = { failures: 0, nextAt: 0, isAsking: false }
  readonly #readiness: ProbeState = { failures: 0, nextAt: 0, isAsking: false }

  constructor(options: ChartPodOptions) {
    const { pod, plane, found, hostPath } = options
    this.#options = options
    const [container, ...others] = pod.spec.containers
    if (container === undefined || others.length > 0) throw new Error('pods of the chart have one container')
    this.#container = container
    this.name = pod.metadata.name ?? ''
    this.#folder = join(options.folder, pod.metadata.uid ?? '')
    const folder = join(this.#folder, 'volumes')
    const onNode = (path: string): string => hostPath(pod.spec.nodeName ?? '', path)
    this.#files = new PodFiles({ plane, folder, pod, found, hostPath: onNode })
  }

  get address(): string | null {
    return this.#network?.address ?? null
  }

  /** Returns the status to report; null: it has not changed. */
  async look(): Promise<ChartPodStatus | null> {
    if (this.#phase === 'Succeeded' || this.#phase === 'Failed') return this.#changed()
    const volumes = await this.#files.renewed()
    if (volumes === null) return null
    if (this.#child === null && performance.now() >= this.#startsAt) this.#start(volumes)
    this.#probe()
    return this.#changed()
  }

  reported(status: ChartPodStatus): void {
    this.#reported = JSON.stringify(status)
  }

  /** Returns whether nothing of it runs. */
  async terminate(graceSeconds: number): Promise<boolean> {
    if (this.#toldAt === null) this.#child?.kill('SIGTERM')
    this.#toldAt ??= performance.now()
    this.#isReady = false
    if (this.#child !== null && performance.now() - this.#toldAt > graceSeconds * 1000) {
      this.#options.onEnd?.('did not end after SIGTERM')
      await this.kill()
    }
    if (this.#child !== null) return false
    this.#removeNetwork()
    return true
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#toldAt ??= performance.now()
    if (child !== null) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    }
    this.#removeNetwork()
  }

  #start(volumes: ReadonlyMap<string, string>): void {
    const { pod, network, hosts, onOutput = () => {}, argsOn, folder } = this.#options
    this.#network ??= network.addPod()
    const cache = join(folder, 'cache')
    mkdirSync(cache, { recursive: true, mode: 0o1777 })
    const child = startContainer({
      ...{ pod, container: this.#container, volumes, cache, hosts },
      root: join(this.#folder, 'root'),
      networkNamespace: this.#network.namespace,
      args: argsOn(pod.spec.nodeName ?? '', this.#container.args ?? []),
      env: {
        ...{ KUBERNETES_SERVICE_HOST: network.apiAddress, KUBERNETES_SERVICE_PORT: '443' },
        ...environmentOf(pod, this.#container.env ?? []),
      },
    })
    this.#child = child
    this.#starts += 1
    this.#phase = 'Running'
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => onOutput(chunk.toString()))
    child.once('exit', (code, signal) => this.#ended(code, signal))
    for (const state of [this.#liveness, this.#readiness]) Object.assign(state, { failures: 0, nextAt: 0 })
    this.#isReady = this.#container.readinessProbe === undefined
  }

  #ended(code: number | null, signal: NodeJS.Signals | null): void {
    this.#child = null
    this.#isReady = false
    this.#exitCode = code ?? 137
    if (this.#options.pod.spec.restartPolicy === 'Never') {
      this.#phase = code === 0 ? 'Succeeded' : 'Failed'
      this.#removeNetwork()
    } else if (this.#toldAt === null) this.#options.onEnd?.(`ended with ${signal ?? code}`)
    else if (code !== 0) this.#options.onEnd?.(`ended with ${signal ?? code} after SIGTERM`)
    this.#startsAt = performance.now() + RESTART_AFTER_MS
  }

  #removeNetwork(): void {
    if (this.#network !== null) this.#options.network.removePod(this.#network.namespace)
    this.#network = null
  }

  // ---- probes ----

  #probe(): void {
    const { livenessProbe, readinessProbe } = this.#container
    const child = this.#child
    if (child === null) return
    const ready = { state: this.#readiness, everyMs: this.#isReady ? null : UNREADY_EVERY_MS }
    void this.#asked(readinessProbe, ready, (isUp, isLast) => {
      if (isUp) this.#isReady = true
      else if (isLast) this.#isReady = false
    })
    // There is no startup probe: the first answer begins its count.
    if (this.#isReady || readinessProbe === undefined)
      void this.#asked(livenessProbe, { state: this.#liveness, everyMs: null }, (isUp, isLast) => {
        if (!isUp && isLast && child === this.#child) child.kill('SIGKILL')
      })
  }

  async #asked(
    probe: Probe | undefined,
    { state, everyMs }: { readonly state: ProbeState; readonly everyMs: number | null },
    told: (isUp: boolean, isLast: boolean) => void,
  ): Promise<void> {
    if (probe === undefined || state.isAsking || performance.now() < state.nextAt) return
    const { periodSeconds = 10, failureThreshold = 3 } = probe as Probe & { readonly periodSeconds?: number }
    const child = this.#child
    state.isAsking = true
    const isUp = await this.#answers(probe)
    state.isAsking = false
    state.nextAt = performance.now() + (everyMs ?? periodSeconds * 1000)
    if (child !== this.#child || this.#toldAt !== null) return
    state.failures = isUp ? 0 : state.failures + 1
    told(isUp, state.failures >= failureThreshold)
  }

  /** As a kubelet: any answer from 200 to 399, whatever the certificate. */
  #answers({ httpGet, timeoutSeconds = 1 }: Probe): Promise<boolean> {
    if (httpGet === undefined) throw new Error('probes of the chart are requests of HTTP')
    const { port, path = '/', scheme = 'HTTP' } = httpGet
    const number =
      typeof port === 'number'
        ? port
        : this.#container.ports?.find(({ name }) => name === port)?.containerPort
    if (number === undefined) {
      this.#options.onNote(`the container has no port ${port}`)
      return Promise.resolve(false)
    }
    const send = scheme === 'HTTPS' ? httpsRequest : httpRequest
    const options = { host: this.address ?? '', port: number, path, rejectUnauthorized: false, agent: false }
    return new Promise((resolve) => {
      const sent = send({ ...options, signal: AbortSignal.timeout(timeoutSeconds * 1000) }, (answer) => {
        answer.resume()
        const code = answer.statusCode ?? 0
        resolve(code >= 200 && code < 400)
      })
      sent.on('error', () => resolve(false))
      sent.end()
    })
  }

  // ---- status ----

  #changed(): ChartPodStatus | null {
    const status = this.#status()
    return JSON.stringify(status) === this.#reported ? null : status
  }

  #status(): ChartPodStatus {
    const { pod } = this.#options
    const { name, image = '' } = this.#container
    const isReady = this.#phase === 'Running' && this.#isReady
    const truth = isReady ? 'True' : 'False'
    const state =
      this.#child !== null
        ? { running: { startedAt: this.#startedAt } }
        : this.#exitCode === null
          ? { waiting: { reason: 'ContainerCreating' } }
          : { terminated: { exitCode: this.#exitCode } }
    const kept = (pod.status?.conditions ?? []).filter(({ type }) => type === 'PodScheduled')
    const conditions = ['Initialized', 'PodReadyToStartContainers', 'ContainersReady', 'Ready'].map(
      (type) => ({
        ...{ type, status: type.endsWith('Ready') ? truth : 'True', lastTransitionTime: this.#startedAt },
      }),
    )
    const addresses = this.address === null ? {} : { podIP: this.address, podIPs: [{ ip: this.address }] }
    const container = {
      ...{ name, image, imageID: '', ready: isReady, started: this.#child !== null, state },
      ...{ restartCount: Math.max(0, this.#starts - 1), containerID: `containerd://${pod.metadata.uid}` },
    }
    return {
      ...{ phase: this.#phase, startTime: this.#startedAt, conditions: [...kept, ...conditions] },
      ...{ ...addresses, containerStatuses: [container] },
    }
  }
}
