/** `headroom operator run`: places pods while it leads, and keeps copies of the cluster while it does not. */
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import { timePasses } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { TermEnd } from '../../controller/ports/leadership.ts'
import type { Extender } from '../../operator/adapters/extender-server.ts'
import { LeaseLeadership } from '../../operator/adapters/lease-leadership.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import type { AskedPolicy } from '../../operator/contract/policy-twin-lines.ts'
import type { KubeApi, ObjectKey } from '../../operator/ports/kube-api.ts'
import { AgentLinks } from '../../operator/placing/agent-links.ts'
import { ClusterCopy, type Copied } from '../../operator/reflector/cluster-copy.ts'
import type { Change } from '../../operator/reflector/reflector.ts'
import type { AgentAnswer, AgentReport } from '../../protocol/agent-messages.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs, Percent } from '../../protocol/units.ts'
import { ClusterObjects } from './cluster-objects.ts'
import { Placement } from './placement.ts'
import type { OwnClock, PlacementOptions } from './placement-parts.ts'
import { PolicyTwin } from './policy-twin.ts'
import { Reports } from './reports.ts'

type TermOptions = Pick<PlacementOptions, 'bindWithinMs' | 'record'>

export interface OperatorOptions extends TermOptions, Partial<Pick<PlacementOptions, 'newClock' | 'random'>> {
  readonly api: KubeApi
  /** Name of this process among the replicas. */
  readonly name: string
  readonly lease: Required<ObjectKey>
  readonly leaseMs: DurationMs
  readonly helmPercent: Percent
  /** Decides on pods and reports it, and leaves them as they are. */
  readonly observes?: boolean
  readonly probeSeconds: number
  readonly onNote: (line: string) => void
  /** Called when it begins and ceases to lead. */
  readonly onLeading?: (isLeading: boolean) => void
}

/** Pauses before another try of a term that could not begin. */
const RETRY_MS = 2_000

export class Operator {
  readonly #options: OperatorOptions
  readonly #clock: OwnClock
  readonly #random: Random
  readonly #agents: AgentLinks
  readonly #objects: ClusterObjects
  readonly #copy: ClusterCopy
  readonly #leadership: LeaseLeadership
  readonly #twin: PolicyTwin
  readonly #stop = Promise.withResolvers<'stopped'>()
  #placement: Placement | null = null
  #reports: Reports | null = null
  #running: Promise<void> | null = null
  #isStopped = false
  #isSynced = false

  constructor(options: OperatorOptions) {
    const { api, name, lease, leaseMs } = options
    this.#options = options
    this.#clock = (options.newClock ?? createSystemClock)()
    this.#random = options.random ?? createSystemRandom()
    this.#agents = new AgentLinks(this.#clock)
    const noted = onceEach(options.onNote)
    this.#objects = new ClusterObjects(() => this.#copy)
    this.#copy = new ClusterCopy({
      ...{ api, clock: this.#clock, random: this.#random.stream('reflectors') },
      onChange: (what, change) => this.#changed(what, change),
      onFault: (error) => noted(`a copy of the cluster is behind: ${errorText(error)}`),
    })
    this.#twin = new PolicyTwin({ ...options, objects: this.#objects })
    this.#leadership = new LeaseLeadership({
      ...{ api, clock: this.#clock, name, lease, leaseMs },
      onFault: (error) => noted(`the lease cannot be reached: ${errorText(error)}`),
    })
  }

  start(): void {
    this.#running ??= this.#run()
  }

  get isLeading(): boolean {
    return this.#placement !== null && this.#leadership.epoch !== 0
  }

  get isSynced(): boolean {
    return this.#isSynced
  }

  get placement(): Placement | null {
    return this.#placement
  }

  /** The extender that answers the scheduler; null: this replica does not lead. */
  readonly extender = (): Extender | null => (this.isLeading ? (this.#placement?.bindings ?? null) : null)

  /** Lines about what a policy would change for waiting pods; null: this replica does not lead. */
  forecast(asked: AskedPolicy): Promise<readonly string[]> | null {
    const placement = this.isLeading ? this.#placement : null
    return placement === null ? null : this.#twin.linesFor(placement.controller.views, asked)
  }

  /** Null: it does not lead, or does not know the node yet. Waits for an order as long as the agent asks. */
  async agentReported(report: AgentReport): Promise<AgentAnswer | null> {
    const { node, wait_ms: waitMs } = report
    if (!this.isBeginning || this.#objects.node(node) === null) return null
    const link = this.#agents.of(node)
    if (link.take(report)) this.#placement?.nodesChanged()
    await link.ordered(waitMs)
    return this.isLeading ? (this.#placement?.agentAnswer(node) ?? null) : null
  }

  /** It leads, though its term may not place pods yet. */
  get isBeginning(): boolean {
    return this.#isSynced && this.#leadership.epoch !== 0
  }

  /** Another replica leads at once. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#stop.resolve('stopped')
    this.#twin.close()
    this.#agents.clear()
    await this.#running
    await this.#leadership.close()
    await this.#copy.stop()
    this.#clock.stop()
  }

  async #run(): Promise<void> {
    const synced = this.#copy.start().then(() => (this.#isSynced = true))
    await Promise.race([synced, this.#stop.promise])
    while (!this.#isStopped) {
      const won = await Promise.race([this.#leadership.campaign(), this.#stop.promise])
      if (won === 'stopped') return
      this.#options.onNote(`leads, term ${won.epoch} (${won.reason})`)
      // Before it places pods: a term begins with what the agents report, and they report to the leader.
      this.#options.onLeading?.(true)
      const end = await this.#lead()
      this.#agents.clear()
      this.#options.onLeading?.(false)
      if (end !== 'stopped') this.#options.onNote(`leads no more: ${end.detail}`)
    }
  }

  /** Until the term ends. A contradiction begins again from what is stored. */
  async #lead(): Promise<TermEnd | 'stopped'> {
    for (;;) {
      const contradiction = Promise.withResolvers<'contradiction'>()
      const placement = await this.#begin(contradiction.resolve)
      const reports = placement === null ? null : this.#report(placement)
      const pause = placement === null ? [this.#pause()] : []
      const ends = [this.#leadership.lost, contradiction.promise, this.#stop.promise, ...pause]
      const end = await Promise.race(ends)
      this.#placement = null
      this.#reports = null
      await reports?.stop()
      await placement?.stop()
      if (end !== 'contradiction' && end !== 'paused') return end
    }
  }

  #report(placement: Placement): Reports {
    const { api, onNote } = this.#options
    this.#reports = new Reports({
      ...{ api, objects: this.#objects, placement, onNote, name: this.#options.name },
    })
    this.#reports.start()
    return this.#reports
  }

  async #begin(onContradiction: (how: 'contradiction') => void): Promise<Placement | null> {
    const { api, helmPercent, probeSeconds, observes = false, onNote, bindWithinMs, record } = this.#options
    const { newClock = createSystemClock } = this.#options
    try {
      const placement = await Placement.start({
        ...{ api, helmPercent, probeSeconds, observes, onNote, newClock, random: this.#random },
        ...{ objects: this.#objects, agents: this.#agents },
        leads: () => this.#leadership.epoch !== 0,
        onContradiction: (why) => {
          onNote(`begins again: ${why}`)
          onContradiction('contradiction')
        },
        ...(bindWithinMs === undefined ? {} : { bindWithinMs }),
        ...(record === undefined ? {} : { record }),
      })
      this.#placement = placement
      // Handles changes that happened during the start.
      for (const pod of this.#objects.pods()) placement.podChanged(pod, false)
      placement.labelsChanged(() => true)
      placement.nodesChanged()
      return placement
    } catch (error) {
      onNote(`placing cannot begin: ${errorText(error)}`)
      return null
    }
  }

  #pause(): Promise<'paused'> {
    return timePasses(this.#clock, RETRY_MS).then(() => 'paused')
  }

  #changed(what: Copied, change: Change): void {
    if (what === 'pods') {
      this.#objects.directory.take(change)
      this.#placement?.podChanged(change.object as unknown as Pod, change.type === 'deleted')
    } else if (what === 'nodes') {
      if (change.type === 'deleted') this.#agents.forget(change.object.metadata.name ?? '')
      this.#placement?.nodesChanged()
    }
    if (what === 'namespaces' || what === 'priorityClasses') this.#labelsChanged(what, change)
    if (what === 'pods' || what === 'namespaces' || what === 'gpuNodes') return
    if (what !== 'nodes') this.#placement?.settle()
    this.#reports?.nodesChanged()
  }

  #labelsChanged(what: 'namespaces' | 'priorityClasses', { object }: Change): void {
    const { name } = object.metadata
    this.#placement?.labelsChanged(({ metadata, spec }) =>
      what === 'namespaces' ? metadata.namespace === name : spec.priorityClassName === name,
    )
  }
}

/** The same line is written once until another one comes. */
function onceEach(write: (line: string) => void): (line: string) => void {
  let last = ''
  return (line) => {
    if (line !== last) write(line)
    last = line
  }
}
