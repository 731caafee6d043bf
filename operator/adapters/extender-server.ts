/**
 * The extender of the scheduler of Kubernetes: only the scheduler may ask. The names of fields are those of
 * k8s.io/kube-scheduler/extender/v1.
 */
import type { FilterAnswer } from '../placing/pod-bindings.ts'
import { CallerServer, type CallerServerOptions, type Route } from './caller-server.ts'

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
}

/** Names of 10,000 nodes, and a pod. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024
/** The scheduler opens one for each binding in progress. */
const MAX_CONNECTIONS = 1_024

type Fields = Readonly<Record<string, unknown>>

/** Resolves once it listens. */
export function startExtenderServer(options: ExtenderServerOptions): Promise<CallerServer> {
  const { extender: current } = options
  const asking =
    (answer: (extender: Extender, asked: Fields) => object | Promise<object>): Route =>
    async (asked) => {
      const extender = current()
      return extender === null ? null : answer(extender, fieldsOf(asked))
    }
  const routes = new Map([
    ['/filter', asking(filtered)],
    ['/bind', asking(bound)],
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
