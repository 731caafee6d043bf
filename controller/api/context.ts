/** The context that every route file receives. */
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Commands } from '../model/command.ts'
import type { Views } from '../query/views.ts'
import type { Simulation } from '../ports/simulation.ts'
import type { Handover } from '../ports/handover.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { TaskChannels } from '../ports/task-channels.ts'
import type { TaskFiles } from '../ports/task-files.ts'
import type { TaskLogs } from '../ports/task-logs.ts'
import type { Twin } from '../ports/twin.ts'
import type { Access } from './auth/access.ts'
import type { StreamsOfTokens } from './auth/open-streams.ts'
import type { CurrentSummary } from './observe/current-summary.ts'
import type { EventSource } from '../engine/durable-events.ts'
import type { EventFeed } from './observe/event-feed.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { Series } from '../series/series.ts'
import type { OwnerLimits } from '../model/owner-limits.ts'
import type { StoreKind } from '../model/store-kind.ts'
import type { TaskWaits } from './tasks/task-waits.ts'

/** A Fastify instance whose handlers get their types from TypeBox schemas. */
export type ApiApp = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>

/** One thing that must hold before requests are let in. */
export interface ReadinessCheck {
  readonly name: string
  readonly ok: boolean
  readonly detail: string
}

/** The running build, if known. */
export interface Build {
  readonly commit: string | null
  /** Schema version of the store. */
  readonly schema: number | null
  readonly storeKind: StoreKind | null
}

export interface ApiContext {
  readonly access: Access
  readonly commands: Commands
  readonly views: Views
  /** Time series of the cluster. */
  readonly series: Series
  /** The cluster on one page. */
  readonly summary: CurrentSummary
  readonly feed: EventFeed
  /** Events as they become durable. */
  readonly events: EventSource
  readonly ownerLimits: OwnerLimits
  readonly streams: StreamsOfTokens
  /** Requests that wait for a task; null in virtual time, where waiting is not possible. */
  readonly waits: TaskWaits | null
  /** Output of tasks; null: there are no GPU servers. */
  readonly logs: TaskLogs | null
  /** Work folders of tasks; null: there are no GPU servers to ask. */
  readonly files: TaskFiles | null
  /** Channels into tasks; null: there are no GPU servers to ask. */
  readonly channels: TaskChannels | null
  /** Uploaded files; null: this is a simulated world itself. */
  readonly blobs: Blobs | null
  /** null: this is a simulated world itself. */
  readonly simulation: Simulation | null
  /** null: the live state cannot be simulated, because this is a simulated world itself. */
  readonly twin: Twin | null
  /** null: this is a simulated world itself. */
  readonly handover: Handover | null
  readonly version: string
  readonly build: Build
  readonly metrics: Metrics
  readonly fleet: 'simulated' | 'live'
  readonly readiness: () => readonly ReadinessCheck[]
}
