/**
 * The kubelets of all nodes for the pods of one namespace: starts the containers that the pod templates of
 * the chart name, does their probes, starts them again after their end, and reports what they do.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { type KubeApi, PODS } from '../../../operator/ports/kube-api.ts'
import { ChartPod, type ChartPodOptions } from './chart-pod.ts'
import { removePod } from './nodes.ts'
import type { StackPodObject } from './pod-object.ts'

const LOOK_EVERY_MS = 50

export interface ChartKubeletOptions extends Omit<ChartPodOptions, 'pod' | 'onNote'> {
  readonly api: KubeApi
  /** Pods of the namespace. */
  readonly pods: () => readonly StackPodObject[]
}

export class ChartKubelet {
  readonly #options: ChartKubeletOptions
  readonly #running = new Map<string, ChartPod>()
  /** Containers that ended by themselves, or were killed by a liveness probe. */
  readonly ends: string[] = []
  /** Output of all containers, by the name of their pod. */
  readonly outputs = new Map<string, string>()
  #isStopped = false
  readonly #loop: Promise<void>

  constructor(options: ChartKubeletOptions) {
    this.#options = options
    this.#loop = this.#run()
  }

  /** The output of all pods whose name begins so. */
  outputOf(prefix: string): string {
    return [...this.outputs].flatMap(([name, text]) => (name.startsWith(prefix) ? [text] : [])).join('\n')
  }

  /** The addresses of the pods whose name begins so. */
  addressesOf(prefix: string): readonly string[] {
    return [...this.#running.values()].flatMap(({ name, address }) =>
      name.startsWith(prefix) && address !== null ? [address] : [],
    )
  }

  get runningPods(): readonly string[] {
    return [...this.#running.values()].map(({ name }) => name)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop
    await Promise.all([...this.#running.values()].map((pod) => pod.kill()))
  }

  async #run(): Promise<void> {
    for (; !this.#isStopped; await delay(LOOK_EVERY_MS)) {
      const all = this.#options.pods().filter(({ spec }) => spec.nodeName !== undefined)
      const looks = all.map((pod) =>
        this.#look(pod).catch((error: unknown) => this.#note(pod.metadata.name ?? '', String(error))),
      )
      await Promise.all(looks)
      const known = new Set(all.map(({ metadata }) => metadata.uid))
      for (const [uid, pod] of this.#running)
        if (!known.has(uid)) {
          this.#running.delete(uid)
          await pod.kill()
        }
    }
  }

  async #look(pod: StackPodObject): Promise<void> {
    const { uid = '', namespace = '', name = '', deletionTimestamp } = pod.metadata
    const { api, plane } = this.#options
    const running = this.#running.get(uid) ?? null
    if (deletionTimestamp !== undefined) {
      if (running !== null && !(await running.terminate(pod.spec.terminationGracePeriodSeconds ?? 30))) return
      this.#running.delete(uid)
      return removePod(plane, pod.metadata)
    }
    if (running === null && ['Succeeded', 'Failed'].includes(pod.status?.phase ?? '')) return
    const own = running ?? this.#add(uid, pod)
    const status = await own.look()
    if (status === null) return
    const body = { metadata: { uid }, status }
    await api.patch(PODS, { namespace, name }, { type: 'merge', body }, { subresource: 'status' })
    own.reported(status)
  }

  #add(uid: string, pod: StackPodObject): ChartPod {
    const name = pod.metadata.name ?? ''
    const onNote = (line: string): void => this.#note(name, line)
    const added = new ChartPod({
      ...this.#options,
      ...{ pod, onNote, onOutput: (text) => this.#write(name, text) },
      onEnd: (how) => this.ends.push(`${name} ${how}`),
    })
    this.#running.set(uid, added)
    return added
  }

  /** The same line only once. */
  #note(name: string, line: string): void {
    const text = `[kubelet] ${line}\n`
    if (!this.outputs.get(name)?.endsWith(text)) this.#write(name, text)
  }

  #write(name: string, text: string): void {
    this.outputs.set(name, `${this.outputs.get(name) ?? ''}${text}`)
  }
}
