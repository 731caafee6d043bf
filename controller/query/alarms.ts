/**
 * States of the whole cluster that an operator should know about now. Each has an event when it begins, a
 * metric, and a line in `headroom status`.
 */
import type { Instant } from '../../protocol/units.ts'
import type { Cluster } from '../state/cluster.ts'
import { aheadNodes } from '../engine/inputs/nodes/contacts.ts'
import { REFUSALS_WITHIN_MS } from '../engine/apply/lifecycle/auto-cordon.ts'
import { suspectAfterMs } from '../state/node-contact.ts'
import { stopsOf } from '../engine/apply/lifecycle/stops.ts'

/** The order in which alarms are shown: those that keep the controller from deciding come first. */
export const ALARM_CODES = [
  'STORE_BEHIND',
  'RECOVERY',
  'BROKER_AWAY',
  'MASS_SILENCE',
  'QUARANTINE',
  'AUTO_CORDONED',
  'AUTO_CORDON_LIMIT',
  'START_REFUSED',
  'STOP_OVERDUE',
] as const
export type AlarmCode = (typeof ALARM_CODES)[number]

export interface Alarm {
  readonly code: AlarmCode
  /** When it began; null: unknown. */
  readonly since: Instant | null
  /** Ids of the nodes concerned; empty: the whole cluster. */
  readonly nodeIds: readonly string[]
  /** What is wrong, then what to do. */
  readonly detail: string
}

/** Returns the current alarms, at most one per code, in the order of ALARM_CODES. */
export function alarmsOf(c: Cluster, now: Instant): readonly Alarm[] {
  return [
    ...storeBehind(c),
    ...inRecovery(c),
    ...brokerAway(c, now),
    ...massSilence(c),
    ...quarantined(c),
    ...autoCordoned(c),
    ...autoCordonLimit(c, now),
    ...startsRefused(c),
    ...stopsOverdue(c, now),
  ]
}

function storeBehind(c: Pick<Cluster, 'contacts' | 'aheadCount' | 'isStoreBehind'>): readonly Alarm[] {
  const ahead = aheadNodes(c)
  const [first] = ahead
  if (first === undefined) return []
  const since = ahead.reduce((earliest, [, one]) => Math.min(earliest, one.since), first[1].since)
  const effect = c.isStoreBehind
    ? 'No task is placed, requeued or declared lost'
    : 'These nodes receive no commands'
  const detail =
    `${ahead.length} of ${c.contacts.size} nodes ${ahead.length === 1 ? 'is' : 'are'} ahead of the store, ` +
    `which went back to an earlier state. ${effect}. ` +
    'Stop the controller and restore the newer store, or restore a backup with `headroom restore`.'
  return [{ code: 'STORE_BEHIND', since, nodeIds: ahead.map(([nodeId]) => nodeId), detail }]
}

function inRecovery({ recovery }: Pick<Cluster, 'recovery'>): readonly Alarm[] {
  if (recovery === null) return []
  const why =
    recovery.reason === 'restored'
      ? 'The store was restored'
      : 'The operator accepted a loss of data (`--accept-loss`)'
  const awaited = [...recovery.awaited]
  const detail =
    `${why}: no task is placed, requeued or declared lost until ${awaited.length} more ` +
    `${awaited.length === 1 ? 'node has' : 'nodes have'} reported. ` +
    `Start ${awaited.length === 1 ? 'its server' : 'their servers'}, or end the recovery with ` +
    '`headroom recovery finish`.'
  return [{ code: 'RECOVERY', since: recovery.since, nodeIds: awaited, detail }]
}

function quarantined({ nodes }: Pick<Cluster, 'nodes'>): readonly Alarm[] {
  let attempts = 0
  let since = Infinity
  const nodeIds: string[] = []
  for (const { id, quarantine } of nodes.values()) {
    if (quarantine.length === 0) continue
    nodeIds.push(id)
    attempts += quarantine.length
    for (const one of quarantine) since = Math.min(since, one.since)
  }
  if (attempts === 0) return []
  const detail =
    `${attempts} running ${attempts === 1 ? 'attempt is' : 'attempts are'} missing from the store. ` +
    'List them with `headroom attempts list`, then adopt or stop each of them.'
  return [{ code: 'QUARANTINE', since, nodeIds, detail }]
}

function brokerAway({ broker, policy }: Pick<Cluster, 'broker' | 'policy'>, now: Instant): readonly Alarm[] {
  const { isAway, since } = broker
  if (!isAway || since === null || now - since < suspectAfterMs(policy)) return []
  const detail =
    'The controller has no connection to the broker. ' +
    'No task is requeued or declared lost until the connection is restored and one run lease period ' +
    'has passed.'
  return [{ code: 'BROKER_AWAY', since, nodeIds: [], detail }]
}

function massSilence({ freeze }: Pick<Cluster, 'freeze'>): readonly Alarm[] {
  if (!freeze.isFrozen) return []
  const detail =
    `${freeze.silentNodes} nodes stopped reporting at the same time. During this requeue freeze, no task ` +
    'is requeued or declared lost. If the nodes are really down, end the freeze.'
  return [{ code: 'MASS_SILENCE', since: freeze.since, nodeIds: [], detail }]
}

function autoCordoned({ nodes }: Pick<Cluster, 'nodes'>): readonly Alarm[] {
  const closed = [...nodes.values()].filter(({ autoCordon }) => autoCordon !== null)
  if (closed.length === 0) return []
  const since = Math.min(...closed.map(({ autoCordon }) => autoCordon?.since ?? Infinity))
  const detail =
    'These nodes cannot start tasks and receive no new tasks until a trial start succeeds. ' +
    'See `headroom node show` for the reason.'
  return [{ code: 'AUTO_CORDONED', since, nodeIds: closed.map(({ id }) => id), detail }]
}

/** A node without a recent refusal is not counted. */
function autoCordonLimit({ nodes }: Pick<Cluster, 'nodes'>, now: Instant): readonly Alarm[] {
  const lately = (at: Instant | undefined): boolean => at !== undefined && now - at < REFUSALS_WITHIN_MS
  const denied = [...nodes.values()].filter(
    ({ isCordonDenied, hostRefusals }) => isCordonDenied && lately(hostRefusals.at(-1)),
  )
  if (denied.length === 0) return []
  const detail =
    'These nodes cannot start tasks. The controller does not cordon them, because half of all nodes are ' +
    'already cordoned. Look for a common cause.'
  return [
    {
      code: 'AUTO_CORDON_LIMIT',
      since: denied[0]?.hostRefusals[0] ?? null,
      nodeIds: denied.map(({ id }) => id),
      detail,
    },
  ]
}

function startsRefused({ startTimers }: Pick<Cluster, 'startTimers'>): readonly Alarm[] {
  const paused = [...startTimers.keys()].filter(({ trouble }) => trouble.pause?.reason === 'START_REFUSED')
  if (paused.length === 0) return []
  const since = Math.min(...paused.map(({ trouble }) => trouble.pause?.since ?? Infinity))
  const detail =
    `No suitable node could start ${tasks(paused.length)}. ` + 'See `headroom why-pending` for the reasons.'
  return [{ code: 'START_REFUSED', since, nodeIds: [], detail }]
}

function stopsOverdue(c: Pick<Cluster, 'nodes'>, now: Instant): readonly Alarm[] {
  const { overdue } = stopsOf(c, now)
  if (overdue.length === 0) return []
  const since = Math.min(...overdue.map(({ stopping }) => stopping?.since ?? Infinity))
  const detail =
    `${tasks(overdue.length)} did not stop within a minute after the stop grace ended. On the node, look ` +
    'for processes that do not exit (state D, a hung file system or driver).'
  return [{ code: 'STOP_OVERDUE', since, nodeIds: [...new Set(overdue.map(({ node }) => node.id))], detail }]
}

function tasks(count: number): string {
  return `${count} ${count === 1 ? 'task' : 'tasks'}`
}
