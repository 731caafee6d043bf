/**
 * Nodes, groups and tasks as callers name them in query parameters: by id or by name. A node's id may be
 * written in upper case. What nothing has is refused with candidates, so that a typing error is not an empty
 * page.
 */
import { byCodeUnits } from '../../structures/order.ts'
import { TASK_STATES } from '../../../protocol/units.ts'
import { isFinal } from '../../model/task.ts'
import type { Views } from '../../query/views.ts'
import { invalidField, type ApiProblem } from './errors.ts'

/** At most this many candidates are named in a refusal; the others are counted. */
const MAX_CANDIDATES = 8
/** Ended tasks whose name contains the text, looked at for one with exactly that name. */
const MAX_ENDED = 200
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const FINAL_STATES = TASK_STATES.filter(isFinal)

/** UUIDs are kept in lower case; any other text stays as it is. */
export function canonicalId(text: string): string {
  return UUID.test(text) ? text.toLowerCase() : text
}

/**
 * The id of the node that a parameter names. A UUID that no node has may be of one that was forgotten: its
 * tasks and events are still there.
 * @throws ApiProblem 400 when no node, or more than one, has that name
 */
export function nodeIdOf(views: Views, parameter: string, text: string): string {
  const id = canonicalId(text)
  if (views.node(id) !== undefined) return id
  const nodes = [...views.nodes()]
  const named = nodes.filter(({ name }) => name === text)
  const [only, second] = named
  if (only !== undefined && second === undefined) return only.id
  if (only !== undefined) throw ambiguous(parameter, 'nodes', text, ids(named))
  if (UUID.test(text)) return id
  throw unknown(parameter, 'a node', text, nearest(text, [...new Set(nodes.map(({ name }) => name))]))
}

/**
 * The id of the task that a parameter names; the id of a task that is no longer kept may still have events.
 * @throws ApiProblem 400 when no task, or more than one, has that name
 */
export async function taskIdOf(views: Views, parameter: string, text: string): Promise<string> {
  if (views.openTask(text) !== undefined || (await views.stored.task(text)) !== null) return text
  if (UUID.test(text)) return text.toLowerCase()
  const alike = await tasksNamedLike(views, text)
  const named = alike.filter(({ name }) => name === text)
  const [only, second] = named
  if (only !== undefined && second === undefined) return only.id
  if (only !== undefined) throw ambiguous(parameter, 'tasks', text, ids(named))
  if (await hasEvents(views, text)) return text
  throw unknown(parameter, 'a task', text, nearest(text, [...new Set(alike.map(({ name }) => name))]))
}

/** @throws ApiProblem 400 when there is no such group */
export function requireGroup(views: Views, parameter: string, text: string): void {
  if (views.group(text) !== undefined) return
  throw unknown(
    parameter,
    'a group',
    text,
    nearest(
      text,
      [...views.groups()].map(({ id }) => id),
    ),
  )
}

/** Events are kept longer than the task that they are about. */
async function hasEvents(views: Views, taskId: string): Promise<boolean> {
  const all = { afterSeq: 0, beforeSeq: null, fromAt: null, untilAt: null, kinds: null, nodeId: null }
  return (await views.stored.events({ ...all, taskId, limit: 1 })).length > 0
}

interface Named {
  readonly id: string
  readonly name: string
}

/** Open tasks, and of the ended the newest: each once. */
async function tasksNamedLike(views: Views, text: string): Promise<readonly Named[]> {
  const found = new Map<string, Named>()
  for (const { spec } of views.openTasks()) if (spec.name.includes(text)) found.set(spec.id, spec)
  const bounds = {
    owner: null,
    nodeId: null,
    beforeSeq: null,
    afterSeq: null,
    isOldestFirst: false,
    limit: MAX_ENDED,
  }
  for (const record of await views.stored.finishedTasks({
    ...bounds,
    states: FINAL_STATES,
    nameContains: text,
  })) {
    found.set(record.id, record)
  }
  return [...found.values()]
}

/**
 * Which names are offered.
 * 1. The longest beginning in common with the text.
 * 2. Name, by code units.
 */
function nearest(text: string, names: readonly string[]): readonly string[] {
  const beginning = new Map(
    names.map((name) => [name, commonBeginning(text.toLowerCase(), name.toLowerCase())]),
  )
  return [...names].sort((a, b) => (beginning.get(b) ?? 0) - (beginning.get(a) ?? 0) || byCodeUnits(a, b))
}

function commonBeginning(one: string, other: string): number {
  let length = 0
  while (length < one.length && one[length] === other[length]) length += 1
  return length
}

function ids(named: readonly { readonly id: string }[]): readonly string[] {
  return named.map(({ id }) => id).sort(byCodeUnits)
}

function unknown(parameter: string, what: string, text: string, names: readonly string[]): ApiProblem {
  const candidates =
    names.length === 0
      ? 'no similar name exists'
      : `candidates: ${listed(names.map((name) => JSON.stringify(name)))}`
  return invalidField(
    `/${parameter}`,
    `query parameter ${parameter} must be the ID or name of ${what}, got ${shown(text)}; ${candidates}`,
  )
}

function ambiguous(parameter: string, what: string, text: string, candidates: readonly string[]): ApiProblem {
  const detail = `${candidates.length} ${what} are named ${shown(text)}; send the ID of one:`
  return invalidField(`/${parameter}`, `query parameter ${parameter}: ${detail} ${listed(candidates)}`)
}

function listed(candidates: readonly string[]): string {
  const more = candidates.length - MAX_CANDIDATES
  return `${candidates.slice(0, MAX_CANDIDATES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const SHOWN_LENGTH = 80

function shown(text: string): string {
  return JSON.stringify(text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text)
}
