/**
 * One storm: the components of the whole stack are killed, and stopped past the lease and continued, while
 * pods come and go. The verdict rests on the history of the API server, on the pods that were acknowledged,
 * and on the processes; not on what the operator reports.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { KubeError, CONFLICT, PODS } from '../../operator/ports/kube-api.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import type { Component } from '../support/kubernetes/component.ts'
import { type HistoryEvent, historyOf } from '../support/kubernetes/history.ts'
import { Stack } from '../support/kubernetes/stack.ts'
import { type GpuLimits, gpuUuidsOf, hasRoom, judge, vramOf } from './placement-judge.ts'

export interface StormPlan {
  readonly seed: string
  /** Of each component, half of them kills. */
  readonly faults: number
  /** Of the API server and etcd together. */
  readonly apiFaults: number
  /** Of leaders that hand over. */
  readonly planned: number
  readonly pods: number
}

export interface StormVerdict {
  readonly faults: Readonly<Record<string, number>>
  readonly acknowledged: number
  readonly bound: number
  readonly ends: Readonly<Record<string, number>>
  readonly overbooked: readonly string[]
  /** Pods that were not bound 60 s after the last fault, although a GPU had room for them. */
  readonly stuck: readonly string[]
  /** Acknowledged pods that failed, vanished, or never ended. */
  readonly lost: readonly string[]
  readonly unrelated: number
  /** Pods of the default scheduler that were refused, or not bound in time. */
  readonly blocked: readonly string[]
  /** Until another operator places pods. */
  readonly takeoverMs: readonly number[]
  readonly plannedMs: readonly number[]
}

export interface Storm {
  readonly verdict: StormVerdict
  readonly history: readonly HistoryEvent[]
  readonly output: string
}

const NODES = [
  { name: 'one', gpusMib: [24_576, 24_576] },
  { name: 'two', gpusMib: [24_576] },
  { name: 'three', gpusMib: [49_152] },
]
const PERCENT = 50
const LEASE_MS = 15_000
/** Past the lease, and shorter than what a liveness probe allows. */
const STOPPED_MS = LEASE_MS + 5_000
const API_AWAY_MS = 5_000
/** A new leader places pods within this time, or the takeover has failed. */
const TAKEOVER_WITHIN_MS = 120_000
const BOUND_WITHIN_MS = 60_000
/** Of pods of the default scheduler, while the API server is there. */
const UNRELATED_WITHIN_MS = 20_000
const DRAIN_MS = 420_000
const GPUS: ReadonlyMap<string, GpuLimits> = new Map(
  NODES.flatMap(({ name, gpusMib }) =>
    gpusMib.map((physicalMib, index) => [
      `${name}-GPU-${index}`,
      { node: name, physicalMib, percent: PERCENT },
    ]),
  ),
)

export async function runStorm(plan: StormPlan): Promise<Storm> {
  const stack = await Stack.start({
    ...{
      nodes: NODES,
      keepsHistory: true,
      operatorOptions: ['--lease', `${LEASE_MS / 1000}s`, '--probe', '5s'],
    },
    policy: { defaultVramOvercommitPercent: PERCENT, idleSwapOutSeconds: 2, safetyReserveMib: 0 },
  })
  try {
    const verdict = await new RunningStorm(stack, plan).run()
    const history = await historyOf(stack.plane.etcdUrl, (key) =>
      WANTED.some((prefix) => key.startsWith(prefix)),
    )
    return { verdict, history, output: stack.output }
  } finally {
    await stack.stop()
  }
}

const WANTED = ['/registry/pods/', '/registry/headroom.dev/', '/registry/leases/headroom/']

class RunningStorm {
  readonly #stack: Stack
  readonly #plan: StormPlan
  readonly #random: () => number
  readonly #faults: Record<string, number> = {}
  /** Names and uids of pods that the API server has acknowledged. */
  readonly #acknowledged = new Map<string, string>()
  readonly #deleted = new Set<string>()
  readonly #takeoverMs: number[] = []
  readonly #plannedMs: number[] = []
  readonly #blocked: string[] = []
  #unrelated = 0
  #apiAwayUntil = 0
  #isOver = false

  constructor(stack: Stack, plan: StormPlan) {
    this.#stack = stack
    this.#plan = plan
    this.#random = createSeededRandom(plan.seed).stream('storm')
  }

  async run(): Promise<StormVerdict> {
    const { faults } = this.#plan
    const { admissions, schedulers, agents } = this.#stack
    const loads = [this.#load(), this.#loadUnrelated()]
    await Promise.all([
      this.#strikeLeaders(),
      this.#strike('admission', faults, () => admissions),
      this.#strike('scheduler', faults, () => schedulers),
      this.#strike('agent', faults, () => [...agents.values()]),
      this.#strikeApi(),
    ])
    this.#isOver = true
    await Promise.all(loads)
    await this.#untilHealed()
    const stuck = await this.#drain()
    return this.#verdict(stuck)
  }

  // ---- load ----

  async #load(): Promise<void> {
    for (let n = 0; n < this.#plan.pods || !this.#isOver; n += 1) {
      const seconds = 5 + Math.floor(this.#random() * 30)
      const pod = {
        name: `pod-${n}`,
        vram: `${4 + Math.floor(this.#random() * 17)}Gi`,
        command: ['sleep', String(seconds)],
        annotations: this.#random() < 0.2 ? { [POD_ANNOTATIONS.swapFromVram]: 'false' } : {},
      }
      const made = await this.#until(() => this.#stack.addPod(pod), pod.name)
      this.#acknowledged.set(made.metadata.uid ?? '', pod.name)
      if (this.#random() < 0.1) void this.#delete(pod.name, made.metadata.uid ?? '')
      await delay(1_000 + this.#random() * 4_000)
    }
  }

  /** While it waits, is bound, or is swapped out. */
  async #delete(name: string, uid: string): Promise<void> {
    await delay(this.#random() * 20_000)
    this.#deleted.add(uid)
    const key = { namespace: 'default', name }
    await this.#until(async () => {
      await this.#stack.api.delete(PODS, key, { uid }).catch((error: unknown) => {
        if (!(error instanceof KubeError) || ![404, CONFLICT].includes(error.code)) throw error
      })
      return { metadata: {} } as Pod
    }, name)
  }

  /** Repeats as clients do; a pod that exists was acknowledged by an answer that was lost. */
  async #until(act: () => Promise<Pod>, name: string): Promise<Pod> {
    for (;;) {
      try {
        return await act()
      } catch (error) {
        if (error instanceof KubeError && error.reason === 'AlreadyExists') {
          const key = { namespace: 'default', name }
          const found = await this.#stack.api.get(PODS, key).catch(() => null)
          if (found !== null) return found as unknown as Pod
        }
      }
      await delay(200)
    }
  }

  /** Pods without the label, of the default scheduler. */
  async #loadUnrelated(): Promise<void> {
    const containers = [{ name: 'main', image: 'registry.example/web:1', command: ['sleep', '2'] }]
    for (; !this.#isOver; await delay(3_000)) {
      this.#unrelated += 1
      const name = `unrelated-${this.#unrelated}`
      const object = {
        metadata: { namespace: 'default', name },
        spec: { restartPolicy: 'Never', containers },
      }
      await this.#until(async () => {
        try {
          return (await this.#stack.api.create(PODS, object)) as unknown as Pod
        } catch (error) {
          const isRefused = error instanceof KubeError && /webhook|headroom/i.test(error.message)
          if (isRefused) this.#blocked.push(`${name}: ${error.message}`)
          throw error
        }
      }, name)
      for (
        let since = performance.now();
        this.#stack.pod(name)?.spec.nodeName === undefined;
        await delay(100)
      ) {
        if (this.#isApiAway) since = performance.now()
        if (performance.now() - since < UNRELATED_WITHIN_MS) continue
        this.#blocked.push(`${name} was not bound within ${UNRELATED_WITHIN_MS / 1000} s`)
        break
      }
    }
  }

  // ---- faults ----

  get #isApiAway(): boolean {
    return performance.now() < this.#apiAwayUntil
  }

  /** Half of the faults are kills. */
  async #strike(what: string, many: number, all: () => readonly Component[]): Promise<void> {
    for (let n = 0; n < many; n += 1) {
      await delay(1_000 + this.#random() * 4_000)
      const components = all()
      const component = components[Math.floor(this.#random() * components.length)]!
      this.#count(`${what} ${n % 2 === 0 ? 'killed' : 'stopped'}`)
      if (n % 2 === 0) await component.end('SIGKILL')
      else await component.pause(STOPPED_MS)
    }
  }

  async #strikeLeaders(): Promise<void> {
    const { faults, planned } = this.#plan
    for (let n = 0; n < faults + planned; n += 1) {
      await delay(2_000 + this.#random() * 3_000)
      const leader = await this.#leader()
      const { starts } = leader.member
      const begun = performance.now()
      const isPlanned = n >= faults
      const how = isPlanned ? 'told to end' : n % 2 === 0 ? 'killed' : 'stopped'
      this.#count(`operator ${how}`)
      const ended =
        how === 'stopped' ? leader.pause(STOPPED_MS) : leader.end(isPlanned ? 'SIGTERM' : 'SIGKILL')
      const isNext = (each: Component): boolean => each !== leader || each.member.starts > starts
      const ms = (await this.#placing(isNext, begun)) - begun
      // Without the API server none can take over.
      if (this.#apiAwayUntil < begun) (isPlanned ? this.#plannedMs : this.#takeoverMs).push(Math.round(ms))
      await ended
    }
  }

  /** Resolves with the time at which an operator says that it places pods. */
  async #placing(isMeant: (operator: Component) => boolean, since: number): Promise<number> {
    for (;;) {
      for (const operator of this.#stack.operators)
        if (isMeant(operator) && (await operator.metric('headroom_operator_leading')) === 1)
          return performance.now()
      if (performance.now() - since > TAKEOVER_WITHIN_MS) throw new Error('no operator has taken over')
      await delay(50)
    }
  }

  async #leader(): Promise<Component> {
    await this.#placing(() => true, performance.now())
    for (;;) {
      const found = await this.#stack.leader()
      if (found !== null) return found
      await delay(200)
    }
  }

  async #strikeApi(): Promise<void> {
    const { apiServer, etcd } = this.#stack
    for (let n = 0; n < this.#plan.apiFaults; n += 1) {
      await delay(15_000 + this.#random() * 20_000)
      const isEtcd = n % 2 === 1
      const component = isEtcd ? etcd : apiServer
      const isKill = n % 4 < 2
      this.#count(`${isEtcd ? 'etcd' : 'API server'} ${isKill ? 'killed' : 'stopped'}`)
      this.#apiAwayUntil = Infinity
      if (isKill) await component.end('SIGKILL')
      else await component.pause(API_AWAY_MS)
      await this.#untilApi()
      this.#apiAwayUntil = performance.now()
    }
  }

  async #untilApi(): Promise<void> {
    const isThere = () =>
      this.#stack.plane.raw('GET', '/readyz').then(
        () => true,
        () => false,
      )
    while (!(await isThere())) await delay(200)
  }

  #count(fault: string): void {
    this.#faults[fault] = (this.#faults[fault] ?? 0) + 1
  }

  // ---- after it ----

  async #untilHealed(): Promise<void> {
    const { operators, admissions, agents } = this.#stack
    const all = [...operators, ...admissions, ...agents.values()]
    while (!all.every(({ isReady }) => isReady)) await delay(200)
    await this.#placing(() => true, performance.now())
  }

  /** Until all pods have ended. Returns those that had room for a minute and were not bound. */
  async #drain(): Promise<readonly string[]> {
    const roomSince = new Map<string, number>()
    const stuck = new Set<string>()
    const end = performance.now() + DRAIN_MS
    for (; performance.now() < end; await delay(500)) {
      const open = this.#stack.pods.filter((pod) => isOurs(pod) && !isOver(pod))
      if (open.length === 0) break
      for (const pod of open.filter(({ spec }) => spec.nodeName === undefined)) {
        const { name = '' } = pod.metadata
        if (!this.#hasRoomFor(pod, open)) roomSince.delete(name)
        else if (!roomSince.has(name)) roomSince.set(name, performance.now())
        else if (performance.now() - roomSince.get(name)! > BOUND_WITHIN_MS)
          stuck.add(`${name}: ${JSON.stringify(pod.status?.conditions)}`)
      }
      if (stuck.size > 0) break
    }
    return [...stuck]
  }

  #hasRoomFor(pod: Pod, open: readonly Pod[]): boolean {
    return [...GPUS].some(([uuid, limits]) => {
      const holders = open.filter((each) => gpuUuidsOf(each).includes(uuid))
      return hasRoom(
        limits,
        holders.map((each) => ({ pod: each.metadata.name ?? '', ...vramOf(each) })),
        vramOf(pod),
      )
    })
  }

  async #verdict(stuck: readonly string[]): Promise<StormVerdict> {
    const history = await historyOf(this.#stack.plane.etcdUrl, (key) =>
      key.startsWith('/registry/pods/default/'),
    )
    const { overbooked, bound, ends } = judge(history, GPUS)
    const counts: Record<string, number> = {}
    const lost: string[] = []
    for (const [uid, name] of this.#acknowledged) {
      const end = ends.get(uid) ?? 'none'
      counts[end] = (counts[end] ?? 0) + 1
      if (end !== 'Succeeded' && !this.#deleted.has(uid)) lost.push(`${name}: ${end}`)
    }
    return {
      ...{
        faults: this.#faults,
        acknowledged: this.#acknowledged.size,
        bound,
        ends: counts,
        overbooked,
        stuck,
        lost,
      },
      ...{ unrelated: this.#unrelated, blocked: this.#blocked },
      ...{ takeoverMs: this.#takeoverMs, plannedMs: this.#plannedMs },
    }
  }
}

function isOurs({ metadata }: Pod): boolean {
  return metadata.annotations?.[POD_ANNOTATIONS.podVram] !== undefined
}

function isOver({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed'
}
