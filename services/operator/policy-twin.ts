/**
 * What a policy would change for waiting pods: the live state of the leader goes on in a process of its own,
 * with the limits of now and with those of the policy.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ClusterSnapshot, NoForecast } from '../../controller/ports/twin.ts'
import type { Views } from '../../controller/query/views.ts'
import { type AskedPolicy, simulatedLines, unsimulated } from '../../operator/contract/policy-twin-lines.ts'
import {
  CLUSTER_GPU_POLICY,
  type ClusterGPUPolicy,
  type VendorNodePolicy,
} from '../../operator/contract/policies.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs, Percent } from '../../protocol/units.ts'
import type { LimitsChange, LimitsForecast } from '../../simulator/twin/limits-forecast.ts'
import type { LimitsJob } from '../twin/twin-job.ts'
import { JobProcess } from '../workers/job-process.ts'
import { workerUrl } from '../workers/worker-url.ts'
import { NodeSettings, type SettingSources } from './node-settings.ts'

export interface PolicyTwinOptions {
  readonly objects: SettingSources
  readonly helmPercent: Percent
  readonly probeSeconds: number
  readonly onNote: (line: string) => void
  /** Default: 7 s, less than admission waits. */
  readonly withinMs?: DurationMs
}

/** Admission waits 8 s, and the API server 10 s. */
const WITHIN_MS: DurationMs = 7_000
/** The start of the process takes a part of the rest. */
const RUNS_WITHIN_MS: DurationMs = 4_000
const HORIZON_MS: DurationMs = 4 * 3_600_000
const MAX_PAIRS = 20
const HEAP_MIB = 384
/** Larger clusters are not copied: the copy alone would delay the leader. */
const MAX_PODS = 10_000

export class PolicyTwin {
  readonly #options: PolicyTwinOptions
  #process: JobProcess<LimitsJob, LimitsForecast | NoForecast> | null = null

  constructor(options: PolicyTwinOptions) {
    this.#options = options
  }

  /** Lines for the person who asks. One forecast at a time. */
  async linesFor(views: Views, asked: AskedPolicy): Promise<readonly string[]> {
    if (this.#process !== null) return [unsimulated('another forecast is in progress; try again')]
    const { pending, running, assigned, unreachable } = views.counts()
    if (pending + running + assigned + unreachable > MAX_PODS)
      return [unsimulated(`the cluster has more than ${MAX_PODS} pods`)]
    const image = views.snapshot()
    const change = this.#changeOf(image, asked)
    if (!isDifferent(image, change)) return ['forecast: no limit of a node changes, so that no wait does.']
    const past = { from: image.at, to: image.at, ended: [], runs: views.activityRuns(), speeds: [] }
    const bounds = { withinMs: RUNS_WITHIN_MS, horizonMs: HORIZON_MS, maxRuns: MAX_PAIRS }
    const found = await this.#simulate({ kind: 'limits', image, past, change, ...bounds })
    return 'reason' in found ? [unsimulated(found.detail)] : simulatedLines(found)
  }

  close(): void {
    void this.#process?.end()
  }

  #changeOf({ nodes }: ClusterSnapshot, asked: AskedPolicy): LimitsChange {
    const { objects, helmPercent, probeSeconds } = this.#options
    const settings = new NodeSettings(sourcesWith(objects, asked), helmPercent, probeSeconds)
    const limits = nodes.map(({ id, name }) => [id, settings.limitsOf(name)] as const)
    return { config: settings.config(), nodes: new Map(limits) }
  }

  /** The process lives for one forecast: forecasts are rare, and its memory is the operator's. */
  async #simulate(job: LimitsJob): Promise<LimitsForecast | NoForecast> {
    const { withinMs = WITHIN_MS, onNote } = this.#options
    const process = new JobProcess<LimitsJob, LimitsForecast | NoForecast>(workerUrl('twin/twin-worker'), {
      heapMib: HEAP_MIB,
    })
    this.#process = process
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      void process.end()
    }, withinMs)
    try {
      return await process.ask(job)
    } catch (error) {
      if (isLate) return { reason: 'TOO_LARGE', detail: `it took longer than ${withinMs / 1000} s` }
      onNote(`the forecast of a policy failed: ${errorText(error)}`)
      return { reason: 'FAILED', detail: 'it failed, see the log of the operator' }
    } finally {
      clearTimeout(timer)
      this.#process = null
      void process.end()
    }
  }
}

function sourcesWith(objects: SettingSources, { kind, policy }: AskedPolicy): SettingSources {
  const isOfCluster = kind === CLUSTER_GPU_POLICY.kind
  const others = (): readonly VendorNodePolicy[] =>
    objects.nodePolicies().filter(({ metadata }) => metadata.name !== policy.metadata.name)
  return {
    node: (name) => objects.node(name),
    clusterPolicy: () => (isOfCluster ? (policy as ClusterGPUPolicy) : objects.clusterPolicy()),
    nodePolicies: () => (isOfCluster ? objects.nodePolicies() : [...others(), policy as VendorNodePolicy]),
  }
}

function isDifferent({ config, nodes }: ClusterSnapshot, change: LimitsChange): boolean {
  return (
    !isDeepStrictEqual({ ...config, ...change.config }, config) ||
    nodes.some(({ id, overcommitOverride, reserveOverrideMib }) => {
      const after = change.nodes.get(id)
      return after?.percent !== overcommitOverride || after.reserveMib !== reserveOverrideMib
    })
  )
}
