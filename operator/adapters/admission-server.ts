/** The webhooks over HTTPS. The API server calls them; nothing else may reach them (a NetworkPolicy). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import type { AdmissionOptions } from '../admission/admission-options.ts'
import {
  type AdmissionAnswer,
  type AdmissionRequest,
  mutateAgent,
  mutatePod,
  nodeOfAgent,
  previewPolicy,
  requestOf,
  validatePod,
  validatePolicy,
} from '../admission/review.ts'
import { CLUSTER_POLICY_NAME } from '../contract/names.ts'
import { nodeOvercommit } from '../contract/overcommit.ts'
import type { ForecastNode } from '../contract/policy-forecast.ts'
import { type AskedPolicy, askedPolicyOf } from '../contract/policy-twin-lines.ts'
import {
  CLUSTER_GPU_POLICY,
  type ClusterGPUPolicy,
  GPU_NODE,
  type GPUNodeStatus,
  VENDOR_NODE_POLICY,
  type VendorNodePolicy,
} from '../contract/policies.ts'
import { allObjects } from '../ports/all-objects.ts'
import { type KubeApi, KubeError, NODES, NOT_FOUND, ownResource } from '../ports/kube-api.ts'
import type { Percent } from '../../protocol/units.ts'
import { AnswerTooLarge, textOf } from './answer-bytes.ts'
import { TlsServer } from './tls-server.ts'

export interface AdmissionServerOptions extends AdmissionOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Certificate and key in PEM. */
  readonly cert: string
  readonly key: string
  /** API for reading all other policies, when a policy is checked. */
  readonly api: KubeApi
  /** The forecast of the operator for a policy, in lines; never rejects. */
  readonly forecast: (asked: AskedPolicy) => Promise<readonly string[]>
  /** Told of faults; texts of requests are not in them. */
  readonly log: (message: string) => void
  /** Called for each review. */
  readonly onAnswered?: (path: string, outcome: ReviewOutcome) => void
}

/** `failed`: the failurePolicy of the webhook decides. */
export type ReviewOutcome = 'allowed' | 'refused' | 'failed'

/** etcd stores objects of at most 1.5 MiB; an update carries two. */
const MAX_REVIEW_BYTES = 4 * 1024 * 1024
const MAX_CONNECTIONS = 256
const READ_WITHIN_MS = 2_000

type Handler = (request: AdmissionRequest) => Promise<AdmissionAnswer> | AdmissionAnswer

export class AdmissionServer extends TlsServer {
  readonly #handlers: Readonly<Record<string, Handler>>
  readonly #log: (message: string) => void
  readonly #onAnswered: (path: string, outcome: ReviewOutcome) => void

  private constructor(options: AdmissionServerOptions) {
    const { cert, key, api, log, onAnswered = () => {} } = options
    super({ cert, key }, { maxConnections: MAX_CONNECTIONS, offersHttp2: false })
    this.#log = log
    this.#onAnswered = onAnswered
    this.#handlers = {
      '/mutate-pods': (request) => mutatePod(request, options),
      '/mutate-agents': async (request) => mutateAgent(request, await percentOf(request, options)),
      '/validate-pods': (request) => validatePod(request, options),
      '/preview-policies': (request) => previewed(request, options),
      '/validate-policies': async (request) => validatePolicy(request, await nodePolicies(api)),
    }
  }

  /** Resolves once it listens. */
  static async start(options: AdmissionServerOptions): Promise<AdmissionServer> {
    const server = new AdmissionServer(options)
    await server.listen(options)
    return server
  }

  protected override async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'https://localhost')
    if (request.method === 'GET' && pathname === '/readyz') return void response.end('ok')
    const handler = Object.hasOwn(this.#handlers, pathname) ? this.#handlers[pathname] : undefined
    if (request.method !== 'POST' || handler === undefined) return void response.writeHead(404).end()
    try {
      const review = requestOf(JSON.parse(await textOf(request, MAX_REVIEW_BYTES)))
      if (review === null) return void response.writeHead(400).end('not an AdmissionReview of version v1')
      const answer = await handler(review)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      this.#onAnswered(pathname, answer.response.allowed ? 'allowed' : 'refused')
    } catch (error) {
      // Without an answer the failurePolicy of the webhook decides.
      const code = error instanceof SyntaxError ? 400 : error instanceof AnswerTooLarge ? 413 : 500
      this.#onAnswered(pathname, 'failed')
      this.#log(`${pathname} answered ${code}: ${error instanceof Error ? error.name : 'unknown error'}`)
      if (!response.headersSent) response.writeHead(code, { connection: 'close' }).end()
    }
  }
}

async function previewed(
  request: AdmissionRequest,
  { api, forecast }: AdmissionServerOptions,
): Promise<AdmissionAnswer> {
  const asked = askedPolicyOf(request.kind.kind, request.object)
  const [nodes, simulated] = await Promise.all([
    withinTime(gpuNodes(api)),
    asked === null ? [] : forecast(asked),
  ])
  return previewPolicy(request, nodes, simulated)
}

/** Null: the pod has no node yet, or the API server did not answer in time. */
async function percentOf(
  request: AdmissionRequest,
  { api, helmPercent, observes }: AdmissionServerOptions,
): Promise<Percent | null> {
  const name = observes ? null : nodeOfAgent(request)
  if (name === null) return null
  const reading = Promise.all([api.get(NODES, { name }), nodePolicies(api), clusterPolicy(api)])
  const found = await withinTime(reading)
  if (found === null) return null
  const [node, policies, cluster] = found
  const sources = { node: node.metadata, nodePolicies: policies, clusterPolicy: cluster, helmPercent }
  return nodeOvercommit(sources).percent
}

/** Null: none exists. */
async function clusterPolicy(api: KubeApi): Promise<ClusterGPUPolicy | null> {
  try {
    const found = await api.get(ownResource(CLUSTER_GPU_POLICY), { name: CLUSTER_POLICY_NAME })
    return found as unknown as ClusterGPUPolicy
  } catch (error) {
    if (error instanceof KubeError && error.code === NOT_FOUND) return null
    throw error
  }
}

async function nodePolicies(api: KubeApi): Promise<readonly VendorNodePolicy[]> {
  const kind = ownResource(VENDOR_NODE_POLICY)
  const { items } = await api.list(kind)
  return items as unknown as readonly VendorNodePolicy[]
}

async function gpuNodes(api: KubeApi): Promise<readonly ForecastNode[]> {
  const found = await allObjects(api, ownResource(GPU_NODE))
  return found.map(({ metadata, ...object }) => ({
    name: metadata.name ?? '',
    status: (object['status'] ?? {}) as GPUNodeStatus,
  }))
}

/** The API server waits for the answer. Null: it came too late, or not at all. */
async function withinTime<T>(reading: Promise<T>): Promise<T | null> {
  const late = pause(READ_WITHIN_MS, null, { ref: false })
  return Promise.race([reading.catch(() => null), late])
}
