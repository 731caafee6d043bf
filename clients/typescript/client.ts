/**
 * A client of the controller's REST API (docs/client.md). Field names are those of the interface:
 * snake_case, MiB, RFC 3339.
 *
 *     const headroom = createClient()
 *     const task = await headroom.tasks.submit({ vram_mib: 8192, command: ['python', 'train.py'] })
 */
import { randomUUID } from 'node:crypto'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { ChangedConfigBody, ConfigBody, RevisionBody } from '../../controller/api/config/schema.ts'
import type { EventBody, EventPage } from '../../controller/api/observe/event-schema.ts'
import type { GroupBody, GroupDryRunBody, GroupPreviewBody } from '../../controller/api/groups/schema.ts'
import type { AssignmentBody } from '../../controller/api/tasks/assignment-schema.ts'
import type { KeepaliveBody, KeptLeaseBody } from '../../controller/api/tasks/lease-schema.ts'
import type { LogBody, LogQuery as LogQueryBody } from '../../controller/api/tasks/log-schema.ts'
import type {
  ChangedNodeBody,
  DrainQuery,
  NodeBody,
  NodeConfigChangeBody,
  NodePage,
} from '../../controller/api/nodes/schema.ts'
import type { PlacementPreviewBody } from '../../controller/api/tasks/preview-schema.ts'
import type { SessionBody } from '../../controller/api/auth/sign-in-schema.ts'
import type { ReadyzBody, VersionBody } from '../../controller/api/http/service-schema.ts'
import type {
  NewSimulationBody,
  NewSweepBody,
  SimulationBody,
} from '../../controller/api/simulations/schema.ts'
import type { SweepReportBody } from '../../controller/api/simulations/sweep-report-schema.ts'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import type {
  AdoptionBody,
  AttemptBody,
  AttemptChoiceBody,
  AttemptListBody,
  RecoveryBody,
} from '../../controller/api/tasks/attempt-schema.ts'
import type { AuditEntryBody, AuditPage, AuditQueryBody } from '../../controller/api/auth/audit-schema.ts'
import type { SecretBody } from '../../controller/api/auth/secret-schema.ts'
import { configOf } from './config.ts'
import { fleetOf } from './fleet.ts'
import { secretsOf } from './secrets.ts'
import type {
  MadeTokenBody,
  NewTokenBody,
  TokenBody,
  TokenPage,
} from '../../controller/api/auth/token-schema.ts'
import type { ExplanationBody } from '../../controller/api/observe/explanation-schema.ts'
import type {
  DecisionBody,
  DecisionPage,
  DecisionQueryBody,
} from '../../controller/api/observe/decision-schema.ts'
import type {
  TaskBody,
  TaskPage,
  TaskPatchBody,
  TaskQuery,
  TaskRequestBody,
  WaitingQuery,
} from '../../controller/api/tasks/schema.ts'
import type { RequeueBody } from '../../controller/api/tasks/recovery-schema.ts'
import type { TwinBody } from '../../controller/api/twin/schema.ts'
import { withClientVariables } from './client-variables.ts'
import { connectionOf } from './connection.ts'
import { endpointsOf } from './endpoints.ts'
import { followEvents, type EventsQuery, type FollowEventsOptions } from './events.ts'
import { blobsOf, taskFilesOf, usageOf } from './files.ts'
import { followLog, type FollowLogOptions } from './logs.ts'
import { leaderOf } from './leader.ts'
import { recoveryOf } from './recovery.ts'
import { simulationsOf, type CallOptions, type DryRun } from './simulations.ts'
import { DEFAULT_URL, pathSegment, Transport } from './transport.ts'

export { ApiError, ConnectionError, SettingsFault, UnexpectedAnswer } from './errors.ts'
export { VariableError } from './client-variables.ts'
export { DEFAULT_URL } from './transport.ts'
export type { LeaderBody as Leader } from '../../controller/api/leader/schema.ts'
export type { FollowLogOptions, LogPiece } from './logs.ts'
export type { FilePiece, FilesQuery, WorkFile } from './files.ts'
export type { EventFilter, EventsQuery, FollowEventsOptions } from './events.ts'
export type {
  AttemptBody as Attempt,
  AuditEntryBody as AuditEntry,
  AuditQueryBody as AuditQuery,
  ConfigBody as Config,
  ConfigFields,
  EventBody as Event,
  EventPage,
  ChangedConfigBody as ChangedConfig,
  ChangedNodeBody as ChangedNode,
  DecisionBody as Decision,
  DecisionQueryBody as DecisionQuery,
  ExplanationBody as Explanation,
  RevisionBody as Revision,
  GroupBody as Group,
  GroupPreviewBody as GroupPreview,
  KeptLeaseBody as KeptLease,
  LogBody as Log,
  MadeTokenBody as MadeToken,
  SecretBody as Secret,
  NodeBody as Node,
  NodeConfigChangeBody as NodeConfigChange,
  NodePage,
  PlacementPreviewBody as PlacementPreview,
  ReadyzBody as Readiness,
  RecoveryBody as Recovery,
  NewSimulationBody as SimulationRequest,
  NewSweepBody as SweepRequest,
  SessionBody as Session,
  SimulationBody as Simulation,
  SummaryBody as Summary,
  SweepReportBody as SweepReport,
  TaskBody as Task,
  TaskPage,
  TaskPatchBody as TaskPatch,
  TaskQuery,
  TaskRequestBody as TaskRequest,
  TokenBody as Token,
  TwinBody as Twin,
  VersionBody as Version,
}

export interface ClientOptions {
  /**
   * Base address, also `unix:///path`, or several of one cluster, separated by commas; else HEADROOM_URL,
   * VENDOR_CONTROLLER_URL, the current context, the socket of a server on this host,
   * http://127.0.0.1:30080.
   */
  readonly url?: string
  /** Else HEADROOM_TOKEN, or the token of the context that gave the address; null sends none. */
  readonly token?: string | null
  /** Maximum attempts per request, where a retry cannot act twice (default 3). */
  readonly attempts?: number
  /** Aborts all requests in progress. */
  readonly signal?: AbortSignal
  /**
   * Source of the variables that fill in missing fields of a submission (docs/client.md); process.env by
   * default.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

interface Idempotent {
  /**
   * 1 to 255 printable ASCII characters; a repeated call with the same key and body returns the same task.
   */
  readonly idempotencyKey?: string
}

type LogQuery = Omit<LogQueryBody, 'follow'>

interface GroupRequest {
  readonly id: string
  readonly description?: string
  readonly node_ids?: readonly string[]
}

/** @throws TypeError when the address is not an http(s) or unix URL, SettingsFault for a bad settings file */
export function createClient(options: ClientOptions = {}) {
  const { url, token, source } = connectionOf(options, process.env)
  const transport = new Transport({
    urls: baseUrls(url, source),
    token,
    attempts: options.attempts ?? 3,
    signal: options.signal ?? null,
  })
  return {
    url: transport.url,
    tasks: tasksOf(transport, options.environment ?? process.env),
    nodes: nodesOf(transport),
    groups: groupsOf(transport),
    simulations: simulationsOf(transport),
    tokens: tokensOf(transport),
    secrets: secretsOf(transport),
    blobs: blobsOf(transport),
    audit: auditOf(transport),
    recovery: recoveryOf(transport),
    leader: leaderOf(transport),
    attempts: attemptsOf(transport),
    fleet: fleetOf(transport),
    endpoints: endpointsOf(transport),
    config: configOf(transport),
    events: {
      /** Oldest first, after the seq `after`. */
      list: ({ signal, ...query }: EventsQuery & CallOptions = {}) =>
        transport.json<EventPage>({ method: 'GET', path: '/events', query, signal }),
      /** Yields events from `after` on; ends with its signal, and survives restarts of the controller. */
      follow: (follow: FollowEventsOptions) => followEvents(transport, follow),
    },
    decisions: {
      /** Newest first, or with `after` oldest first. */
      list: ({ signal, ...query }: DecisionQueryBody & CallOptions = {}) =>
        transport.json<DecisionPage>({ method: 'GET', path: '/decisions', query, signal }),
      get: (number: number, { signal }: CallOptions = {}) =>
        transport.json<DecisionBody>({
          method: 'GET',
          path: `/decisions/${pathSegment(String(number))}`,
          signal,
        }),
    },
    summary: ({ signal }: CallOptions = {}) =>
      transport.json<SummaryBody>({ method: 'GET', path: '/summary', signal }),
    /** The live state as a scenario file, as a streamed response. */
    snapshot: ({ signal }: CallOptions = {}) => transport.open({ method: 'GET', path: '/snapshot', signal }),
    /** The accuracy of the twin's forecasts. */
    twin: ({ signal }: CallOptions = {}) =>
      transport.json<TwinBody>({ method: 'GET', path: '/twin', signal }),
    /** Returns the identity of the caller. */
    session: ({ signal }: CallOptions = {}) =>
      transport.json<SessionBody>({ method: 'GET', path: '/auth/session', signal }),
    usage: usageOf(transport),
    version: ({ signal }: CallOptions = {}) =>
      transport.json<VersionBody>({ method: 'GET', path: '/version', signal }),
    /** Readiness: the controller's own checks. */
    readiness: ({ signal }: CallOptions = {}) =>
      transport.anyStatus<ReadyzBody>({ method: 'GET', path: '/readyz', signal }),
  }
}

export type HeadroomClient = ReturnType<typeof createClient>

function tasksOf(transport: Transport, environment: NonNullable<ClientOptions['environment']>) {
  const filledIn = (request: TaskRequestBody): TaskRequestBody => {
    const filled = withClientVariables(request, environment)
    if (filled.taken.length > 0)
      process.stderr.write(`headroom: taken from the environment: ${filled.taken.join(', ')}\n`)
    return filled.request
  }
  const at = (id: string): string => `/tasks/${pathSegment(id)}`
  const list = ({ signal, ...query }: TaskQuery & CallOptions = {}) =>
    transport.json<TaskPage>({ method: 'GET', path: '/tasks', query, signal })
  const post = (id: string, verb: string, { signal }: CallOptions) =>
    transport.json<TaskBody>({ method: 'POST', path: `${at(id)}/${verb}`, signal })
  return {
    /**
     * Resolves when the task is durable. Every call has its own key, so a retry after a lost answer does not
     * create a second task; `idempotencyKey` extends this to several calls.
     */
    submit: (
      request: TaskRequestBody,
      { idempotencyKey = randomUUID(), signal }: CallOptions & Idempotent = {},
    ) =>
      transport.json<TaskBody>({
        method: 'POST',
        path: '/tasks',
        body: filledIn(request),
        headers: { 'idempotency-key': idempotencyKey },
        isRepeatable: true,
        signal,
      }),
    /**
     * With `wait` (at most 60s) it resolves when the task has ended, or `until: 'started'`, or after that
     * time.
     */
    get: (id: string, { signal, ...query }: WaitingQuery & CallOptions = {}) =>
      transport.json<TaskBody>({ method: 'GET', path: at(id), query, signal }),
    /** Returns the place of a placed task, and the addresses of its ports for clients. */
    assignment: (id: string, { signal }: CallOptions = {}) =>
      transport.json<AssignmentBody>({ method: 'GET', path: `${at(id)}/assignment`, signal }),
    /** One page, newest first. */
    list,
    /** All pages, one task at a time. */
    each: (query: Omit<TaskQuery, 'cursor'> & CallOptions = {}) =>
      eachOf((cursor) => list({ ...query, ...cursor })),
    update: (id: string, patch: TaskPatchBody, { signal }: CallOptions = {}) =>
      transport.json<TaskBody>({ method: 'PATCH', path: at(id), body: patch, signal }),
    /** A pending task is cancelled at once; a placed task is stopping when this resolves. */
    cancel: (id: string, { signal, now = false }: CallOptions & { readonly now?: boolean } = {}) =>
      transport.json<TaskBody>({
        method: 'DELETE',
        path: at(id),
        ...(now ? { query: { now: true } } : {}),
        signal,
      }),
    /**
     * Where the task would be placed now, and which tasks would be swapped out; submits nothing. With
     * `forecast` also when it would start, after about two seconds.
     */
    tryOut: (
      request: TaskRequestBody,
      { forecast, signal }: CallOptions & { readonly forecast?: boolean } = {},
    ) =>
      transport.json<PlacementPreviewBody>({
        method: 'POST',
        path: '/tasks',
        query: { dry_run: true, forecast },
        body: filledIn(request),
        signal,
      }),
    /** Ends the attempt of a placed task, which waits again; `confirm_fenced`: see the route. */
    requeue: (id: string, body: RequeueBody = {}, { signal }: CallOptions = {}) =>
      transport.json<TaskBody>({ method: 'POST', path: `${at(id)}/requeue`, body, signal }),
    /** A task on hold is not placed until it is released. */
    hold: (id: string, options: CallOptions = {}) => post(id, 'hold', options),
    release: (id: string, options: CallOptions = {}) => post(id, 'release', options),
    /** The order is durable when this resolves; the GPU server may still refuse it. */
    swapOut: (id: string, options: CallOptions = {}) => post(id, 'swap-out', options),
    swapIn: (id: string, options: CallOptions = {}) => post(id, 'swap-in', options),
    /** Why the task waits, or where it is placed. */
    explain: (
      id: string,
      { forecast, signal }: CallOptions & { readonly forecast?: 'none' | 'latest' | 'wait' } = {},
    ) =>
      transport.json<ExplanationBody>({
        method: 'GET',
        path: `${at(id)}/explain`,
        query: { forecast },
        signal,
      }),
    /** Extends a lease. `busy`: it wants the GPU; absent: its server measures that. */
    keepalive: (id: string, body: KeepaliveBody, { signal }: CallOptions = {}) =>
      transport.json<KeptLeaseBody>({
        method: 'POST',
        path: `${at(id)}/keepalive`,
        body,
        isRepeatable: true,
        signal,
      }),
    /** A piece of the output of its latest attempt. */
    readLog: (id: string, { signal, ...query }: LogQuery & CallOptions = {}) =>
      transport.json<LogBody>({ method: 'GET', path: `${at(id)}/logs`, query, signal }),
    /** Its output, until all output of an attempt is read; survives restarts of the controller. */
    followLog: (id: string, options: FollowLogOptions = {}) => followLog(transport, id, options),
    ...taskFilesOf(transport),
  }
}

function attemptsOf(transport: Transport) {
  const at = (taskId: string, attempt: number): string => `/attempts/${pathSegment(taskId)}/${attempt}`
  return {
    /** Running attempts that the store does not know. */
    list: async ({ signal }: CallOptions = {}) =>
      (await transport.json<AttemptListBody>({ method: 'GET', path: '/attempts', signal })).items,
    adopt: (taskId: string, attempt: number, body: AdoptionBody, { signal }: CallOptions = {}) =>
      transport.json<TaskBody>({ method: 'POST', path: `${at(taskId, attempt)}/adopt`, body, signal }),
    stop: (taskId: string, attempt: number, body: AttemptChoiceBody = {}, { signal }: CallOptions = {}) =>
      transport.json<AttemptBody>({ method: 'POST', path: `${at(taskId, attempt)}/stop`, body, signal }),
  }
}

function nodesOf(transport: Transport) {
  const at = (id: string): string => `/nodes/${pathSegment(id)}`
  const list = ({
    signal,
    ...query
  }: CallOptions & { readonly limit?: number; readonly cursor?: string } = {}) =>
    transport.json<NodePage>({ method: 'GET', path: '/nodes', query, signal })
  const post = (id: string, verb: string, { signal }: CallOptions) =>
    transport.json<NodeBody>({ method: 'POST', path: `${at(id)}/${verb}`, isRepeatable: true, signal })
  return {
    /** One page, in order of registration. */
    list,
    each: (query: CallOptions & { readonly limit?: number } = {}) =>
      eachOf((cursor) => list({ ...query, ...cursor })),
    get: (id: string, { signal }: CallOptions = {}) =>
      transport.json<NodeBody>({ method: 'GET', path: at(id), signal }),
    /** A null or absent `overcommit_vram_percent` removes the override. */
    configure: (id: string, change: NodeConfigChangeBody, { dryRun, signal }: CallOptions & DryRun = {}) =>
      transport.json<ChangedNodeBody>({
        method: 'PUT',
        path: `${at(id)}/config`,
        query: { dry_run: dryRun },
        body: change,
        signal,
      }),
    cordon: (id: string, options: CallOptions = {}) => post(id, 'cordon', options),
    uncordon: (id: string, options: CallOptions = {}) => post(id, 'uncordon', options),
    /**
     * Cordons the node until it is uncordoned; with `requeue` tasks that may be requeued are moved,
     * `after_seconds` from now.
     */
    drain: (id: string, { signal, ...query }: DrainQuery & CallOptions = {}) =>
      transport.json<NodeBody>({ method: 'POST', path: `${at(id)}/drain`, query, signal }),
    /** Forgets a node that is gone for good; 409 while it is up or has placed tasks. */
    remove: (id: string, { signal }: CallOptions = {}) =>
      transport.json<null>({ method: 'DELETE', path: at(id), signal }),
  }
}

function groupsOf(transport: Transport) {
  const at = (id: string): string => `/groups/${pathSegment(id)}`
  const member = (id: string, nodeId: string): string => `${at(id)}/nodes/${pathSegment(nodeId)}`
  return {
    /** All groups, by name. */
    list: async ({ signal }: CallOptions = {}) =>
      (
        await transport.json<{ readonly items: readonly GroupBody[] }>({
          method: 'GET',
          path: '/groups',
          signal,
        })
      ).items,
    get: (id: string, { signal }: CallOptions = {}) =>
      transport.json<GroupBody>({ method: 'GET', path: at(id), signal }),
    create: (group: GroupRequest, { signal }: CallOptions = {}) =>
      transport.json<GroupBody>({ method: 'POST', path: '/groups', body: group, signal }),
    /** Replaces the whole group, or creates it. */
    put: (
      id: string,
      group: Omit<GroupRequest, 'id'> & { readonly node_ids: readonly string[] },
      { signal }: CallOptions = {},
    ) => transport.json<GroupBody>({ method: 'PUT', path: at(id), body: group, signal }),
    /** Returns the effect of a change without making it. */
    tryPut: (id: string, nodeIds: readonly string[], { signal }: CallOptions = {}) =>
      transport.json<GroupDryRunBody>({
        method: 'PUT',
        path: at(id),
        query: { dry_run: true },
        body: { node_ids: nodeIds },
        signal,
      }),
    tryDelete: (id: string, { signal }: CallOptions = {}) =>
      transport.json<GroupDryRunBody>({ method: 'DELETE', path: at(id), query: { dry_run: true }, signal }),
    tryAddNode: (id: string, nodeId: string, { signal }: CallOptions = {}) =>
      transport.json<GroupDryRunBody>({
        method: 'PUT',
        path: member(id, nodeId),
        query: { dry_run: true },
        signal,
      }),
    tryRemoveNode: (id: string, nodeId: string, { signal }: CallOptions = {}) =>
      transport.json<GroupDryRunBody>({
        method: 'DELETE',
        path: member(id, nodeId),
        query: { dry_run: true },
        signal,
      }),
    /** 409 while pending tasks target it, unless `force`. */
    delete: (id: string, { force, signal }: CallOptions & { readonly force?: boolean } = {}) =>
      transport.json<null>({ method: 'DELETE', path: at(id), query: { force }, signal }),
    addNode: (id: string, nodeId: string, { signal }: CallOptions = {}) =>
      transport.json<GroupBody>({ method: 'PUT', path: member(id, nodeId), isRepeatable: true, signal }),
    removeNode: (id: string, nodeId: string, { signal }: CallOptions = {}) =>
      transport.json<null>({ method: 'DELETE', path: member(id, nodeId), signal }),
  }
}

function tokensOf(transport: Transport) {
  return {
    /** All tokens, in order of creation; without their secrets. */
    list: async ({ signal }: CallOptions = {}) =>
      (await transport.json<TokenPage>({ method: 'GET', path: '/tokens', signal })).items,
    /** The answer holds the secret; it cannot be read again. */
    create: (token: NewTokenBody, { signal }: CallOptions = {}) =>
      transport.json<MadeTokenBody>({ method: 'POST', path: '/tokens', body: token, signal }),
    /** 409 for the last admin token, unless `force`. */
    revoke: (id: string, { force, signal }: CallOptions & { readonly force?: boolean } = {}) =>
      transport.json<null>({
        method: 'DELETE',
        path: `/tokens/${pathSegment(id)}`,
        query: { force },
        signal,
      }),
  }
}

function auditOf(transport: Transport) {
  const list = ({ signal, ...query }: AuditQueryBody & CallOptions = {}) =>
    transport.json<AuditPage>({ method: 'GET', path: '/audit', query, signal })
  return {
    /** One page, newest first. */
    list,
    each: (
      query: Omit<AuditQueryBody, 'cursor'> & CallOptions = {},
    ): AsyncGenerator<AuditEntryBody, void, undefined> => eachOf((cursor) => list({ ...query, ...cursor })),
  }
}

interface Page<T> {
  readonly items: readonly T[]
  readonly next_cursor: string | null
}

async function* eachOf<T>(
  pageAt: (cursor: { readonly cursor?: string }) => Promise<Page<T>>,
): AsyncGenerator<T, void, undefined> {
  let page = await pageAt({})
  for (;;) {
    yield* page.items
    if (page.next_cursor === null) return
    page = await pageAt({ cursor: page.next_cursor })
  }
}

const MAX_URLS = 8

/** Several addresses are separated by commas. */
function baseUrls(text: string, source: string | null): readonly string[] {
  const urls = text.split(',').map((each) => baseUrl(each.trim(), source))
  if (urls.length <= MAX_URLS) return urls
  throw new TypeError(`${source === null ? '' : `${source}: `}at most ${MAX_URLS} addresses are allowed`)
}

/** Removes a trailing slash; keeps a path in front of /api/v1. */
function baseUrl(text: string, source: string | null): string {
  const url = URL.parse(text)
  if (url?.protocol === 'unix:' && url.host === '' && url.pathname.length > 1) return `unix://${url.pathname}`
  const isUsable =
    url !== null &&
    (url.protocol === 'http:' || url.protocol === 'https:') &&
    url.username === '' &&
    url.password === ''
  if (!isUsable || url.search !== '' || url.hash !== '') {
    const from = source === null ? '' : `${source}: `
    const shown = JSON.stringify(text.replace(/\/\/[^@/]*@/, '//…@').slice(0, 200))
    throw new TypeError(`${from}${shown} is not the address of a controller (${DEFAULT_URL})`)
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}
