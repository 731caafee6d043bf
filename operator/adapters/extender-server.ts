/**
 * The extender of the scheduler of Kubernetes, and forecasts for admission; each caller has its own routes.
 * The names of fields of the extender are those of k8s.io/kube-scheduler/extender/v1.
 */
import type { FilterAnswer } from '../placing/pod-bindings.ts'
import { type AskedPolicy, askedPolicyOf } from '../contract/policy-twin-lines.ts'
import { CallerServer, type CallerServerOptions, Malformed, type Route } from './caller-server.ts'

/** Common names in the certificates of the callers. */
export const SCHEDULER_CALLER = 'headroom-scheduler'
export const ADMISSION_CALLER = 'headroom-admission'
export const FORECAST_PATH = '/forecast'

/** Null: this operator does not lead. */
export interface Extender {
  filter(podUid: string, nodeNames: readonly string[]): FilterAnswer
  bind(podUid: string, nodeName: string): Promise<string | null>
}

export interface ExtenderServerOptions extends Omit<
  CallerServerOptions,
  'routes' | 'maxConnections' | 'maxRequestBytes'
> {
  readonly extender: () => Extender | null
  /** Lines; null: this operator does not lead. */
  readonly forecast: (asked: AskedPolicy) => Promise<readonly string[]> | null
}

/** Names of 10,000 nodes, and a pod. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024
/** The scheduler opens one for each binding in progress. */
const MAX_CONNECTIONS = 1_024

type Fields = Readonly<Record<string, unknown>>

/** Resolves once it listens. */
export function startExtenderServer(options: ExtenderServerOptions): Promise<CallerServer> {
  const { extender: current, forecast } = options
  const asking =
    (answer: (extender: Extender, asked: Fields) => object | Promise<object>): Route =>
    async (asked) => {
      const extender = current()
      return extender === null ? null : answer(extender, fieldsOf(asked))
    }
  const ofScheduler = new Map([
    ['/filter', asking(filtered)],
    ['/bind', asking(bound)],
  ])
  const forecasting: Route = async (asked) => {
    const { kind, policy } = fieldsOf(asked)
    const given = askedPolicyOf(kind, policy)
    if (given === null) throw new Malformed('not a policy')
    const lines = await forecast(given)
    return lines === null ? null : { lines }
  }
  const routes = new Map([
    [SCHEDULER_CALLER, ofScheduler],
    [ADMISSION_CALLER, new Map([[FORECAST_PATH, forecasting]])],
  ])
  const limits = { maxConnections: MAX_CONNECTIONS, maxRequestBytes: MAX_REQUEST_BYTES }
  return CallerServer.start({ ...options, ...limits, routes })
}

function filtered(extender: Extender, asked: Fields): object {
  const { uid } = fieldsOf(fieldsOf(asked['Pod'])['metadata'])
  const names = asked['NodeNames']
  if (typeof uid !== 'string' || !Array.isArray(names)) return { Error: 'Pod or NodeNames is missing' }
  const { nodeNames, failed } = extender.filter(
    uid,
    names.filter((name) => typeof name === 'string'),
  )
  return { NodeNames: nodeNames, FailedNodes: failed, Error: '' }
}

async function bound(extender: Extender, asked: Fields): Promise<object> {
  const { PodUID: uid, Node: node } = asked
  if (typeof uid !== 'string' || typeof node !== 'string') return { Error: 'PodUID or Node is missing' }
  return { Error: (await extender.bind(uid, node)) ?? '' }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}
