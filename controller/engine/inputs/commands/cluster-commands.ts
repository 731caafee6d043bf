/** Commands that change the configuration, nodes and groups. */
import type { Instant } from '../../../../protocol/units.ts'
import { checkConfig, checkConfigChange } from '../../../model/config.ts'
import type { Config, ConfigFields } from '../../../model/config.ts'
import { isPlainName, type Group } from '../../../model/group.ts'
import type { Node } from '../../../model/placement.ts'
import type { Answer, NodeConfigChange } from '../../../model/command.ts'
import { replanProbes } from '../../apply/lifecycle/probes.ts'
import type { Cluster } from '../../../state/cluster.ts'
import { groupsNaming } from '../../../state/index/membership.ts'
import { dropEntry } from '../../apply/lifecycle/entries.ts'
import { forgetContact } from '../nodes/contacts.ts'
import type { LiveNode } from '../../../state/facts.ts'

export function putConfig(
  c: Cluster,
  change: Partial<ConfigFields>,
  author: string | null,
  now: Instant,
): Answer<Config> {
  const planned = plannedConfig(c.config, change)
  if (!planned.ok) return planned
  const config = planned.value
  const { fields } = config
  keepLongLeases(c, c.config.fields.run_lease_seconds, fields.run_lease_seconds)
  const { swapInProbeMs } = c.policy
  c.applyConfig(config, now)
  if (c.policy.swapInProbeMs !== swapInProbeMs) replanProbes(c, now)
  const { transaction } = c.eventLog
  transaction.config = { revision: config.revision, at: now, author, fields }
  c.eventLog.emit(now, 'config_changed', null, null, null, { revision: config.revision, ...change })
  return { ok: true, value: config }
}

/** Returns the configuration after the change, or why it is refused. */
export function plannedConfig(before: Config, change: Partial<ConfigFields>): Answer<Config> {
  const problems = checkConfigChange(change)
  if (problems.length > 0) return { ok: false, refusal: { code: 'invalid', problems } }
  const fields: ConfigFields = { ...before.fields, ...change }
  const spanning = checkConfig(fields)
  if (spanning.length > 0) return { ok: false, refusal: { code: 'invalid', problems: spanning } }
  return { ok: true, value: { fields, source: 'persisted', revision: before.revision + 1 } }
}

export function putNodeConfig(
  c: Cluster,
  nodeId: string,
  change: NodeConfigChange,
  now: Instant,
): Answer<LiveNode> {
  const node = c.nodes.get(nodeId)
  if (node === undefined) return { ok: false, refusal: { code: 'not_found', what: 'node', id: nodeId } }
  Object.assign(node, overridesAfter(node, change))
  c.applyCapacity(node)
  c.assignPools(node)
  for (const pool of node.pools) pool.reserveChanged()
  c.eventLog.emit(now, 'node_config_changed', null, node.id, null, {
    overcommit_vram_percent: node.overcommitOverride,
    safety_reserve_mib: node.reserveOverrideMib,
  })
  c.eventLog.dirtyNode(node)
  return { ok: true, value: node }
}

export type Overrides = Pick<Node, 'overcommitOverride' | 'reserveOverrideMib'>

export function overridesAfter(
  before: Overrides,
  { overcommitPercent, reserveMib }: NodeConfigChange,
): Overrides {
  return {
    overcommitOverride: overcommitPercent === undefined ? before.overcommitOverride : overcommitPercent,
    reserveOverrideMib: reserveMib === undefined ? before.reserveOverrideMib : reserveMib,
  }
}

/** Removes a node that is gone for good. */
export function forgetNode(c: Cluster, nodeId: string, by: string, now: Instant): Answer<null> {
  const node = c.nodes.get(nodeId)
  if (node === undefined) return { ok: false, refusal: { code: 'not_found', what: 'node', id: nodeId } }
  const conflict = (detail: string): Answer<null> => ({ ok: false, refusal: { code: 'conflict', detail } })
  if (node.status === 'up') return conflict(`node ${node.name} is up: stop its server first`)
  const placed = node.gpus.flatMap((gpu) => gpu.placements)[0]
  if (placed !== undefined)
    return conflict(`task ${placed.task.spec.id} is placed on node ${node.name}: cancel or requeue it first`)
  for (const entry of [...node.queue]) {
    dropEntry(c, entry)
    if (entry.task.queue === null) c.enqueue(entry.task, now)
  }
  node.cancelWake?.()
  node.cancelDrain?.()
  node.cancelEager?.()
  c.removeNode(node)
  forgetContact(c, nodeId, now)
  c.eventLog.forgetNode(node)
  c.eventLog.emit(now, 'node_forgotten', null, nodeId, null, { name: node.name, by })
  return { ok: true, value: null }
}

export function putGroup(c: Cluster, group: Group, ifAbsent: boolean, now: Instant): Answer<Group> {
  if (ifAbsent && c.groups.has(group.id)) {
    return { ok: false, refusal: { code: 'conflict', detail: `group ${group.id} already exists` } }
  }
  if (!c.groups.has(group.id) && !isPlainName(group.id)) {
    const detail = `must use normalized letters: ${group.id.normalize('NFKC')} instead of ${group.id}`
    return { ok: false, refusal: { code: 'invalid', problems: [{ field: 'id', detail }] } }
  }
  c.groups.set(group.id, group)
  c.eventLog.transaction.groups.push(group)
  c.eventLog.emit(now, 'group_changed', null, null, null, { group: group.id, nodes: group.nodeIds })
  regroup(c)
  return { ok: true, value: group }
}

export function deleteGroup(c: Cluster, id: string, force: boolean, now: Instant): Answer<null> {
  if (!c.groups.has(id)) return { ok: false, refusal: { code: 'not_found', what: 'group', id } }
  if (!force) {
    for (const task of c.tasks.values()) {
      if (task.state === 'pending' && task.spec.groups.includes(id)) {
        return {
          ok: false,
          refusal: {
            code: 'conflict',
            detail: `pending task ${task.spec.id} targets group ${id}; use force to delete the group anyway`,
          },
        }
      }
    }
  }
  c.groups.delete(id)
  c.eventLog.transaction.deletedGroupIds.push(id)
  c.eventLog.emit(now, 'group_deleted', null, null, null, { group: id })
  regroup(c)
  return { ok: true, value: null }
}

/**
 * Nodes whose groups changed leave and join pools at once; tasks already placed there finish there (semantics
 * 1).
 */
function regroup(c: Cluster): void {
  for (const node of c.nodes.values()) {
    const groups = groupsNaming(c.groups.values(), node.id)
    if (groups.length === node.groups.length && groups.every((group, i) => group === node.groups[i])) continue
    node.groups = groups
    c.assignPools(node)
  }
}

/**
 * The configured lease became shorter: nodes may hold the longer one, also after a restart of the controller.
 */
function keepLongLeases(c: Cluster, beforeSeconds: number, afterSeconds: number): void {
  if (afterSeconds >= beforeSeconds) return
  for (const node of c.nodes.values()) {
    node.contact.leaseMs = Math.max(node.contact.leaseMs, beforeSeconds * 1000)
    node.contact.longLeaseEndsAt = node.contact.leaseEndsAt
    c.eventLog.dirtyNode(node)
  }
}
