/** The parts of a term, apart from its decisions. */
import type { SystemClock } from '../../controller/adapters/system-clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { InputTap } from '../../controller/recording/input-recorder.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { AgentLinks } from '../../operator/placing/agent-links.ts'
import type { NodeLimits } from '../../operator/placing/claims.ts'
import type { DeclaredGpu } from '../../operator/placing/declared-gpus.ts'
import type { NodeBook } from '../../operator/placing/node-book.ts'
import { PodBindings } from '../../operator/placing/pod-bindings.ts'
import type { PodDevice } from '../../operator/placing/pod-device.ts'
import type { KubeApi } from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs, Instant, Mib, Percent } from '../../protocol/units.ts'
import type { ClusterObjects } from './cluster-objects.ts'

/** What stops with it never runs. */
export type OwnClock = Clock & Pick<SystemClock, 'stop'>

export interface PlacementOptions {
  readonly api: KubeApi
  /** Makes the clock of a term. */
  readonly newClock: () => OwnClock
  readonly random: Random
  readonly objects: ClusterObjects
  readonly agents: AgentLinks
  readonly helmPercent: Percent
  /** Decides, and does nothing. */
  readonly observes: boolean
  /** A pod that is out cannot say that it wants the GPU: it returns this long after its swap-out. */
  readonly probeSeconds: number
  readonly leads: () => boolean
  readonly onNote: (line: string) => void
  /** The stored state contradicts the decisions of this term: a new term must begin. */
  readonly onContradiction: (why: string) => void
  readonly bindWithinMs?: DurationMs
  /** Begins the recording of a term. Absent: nothing is recorded. */
  readonly record?: () => TermRecording
}

export interface Host {
  readonly name: string
  readonly id: string
  readonly device: PodDevice
  readonly core: ServerCore
  readonly hostSwapMib: Mib
  gpus: readonly DeclaredGpu[]
}

export interface TermRecording {
  readonly tap: InputTap
  /** Resolves once everything is on the disk. */
  close(): Promise<void>
}

interface Term {
  readonly settings: { limitsOf(nodeName: string): NodeLimits }
  book(nodeName: string): NodeBook
  whyWaiting(uid: string): string
}

/** ISO 8601, as the times of Kubernetes. */
export function wholeSeconds(instant: Instant): string {
  return new Date(instant).toISOString().replace(/\.\d+Z$/, 'Z')
}

export function podBindings(options: PlacementOptions, clock: Clock, term: Term): PodBindings {
  return new PodBindings({
    ...options,
    ...{ clock, pod: options.objects.pod, onFault: (error) => options.onNote(errorText(error)) },
    book: (nodeName) => term.book(nodeName),
    limits: (nodeName) => term.settings.limitsOf(nodeName),
    whyWaiting: (uid) => term.whyWaiting(uid),
  })
}
