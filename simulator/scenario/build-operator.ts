/**
 * Converts `operator` entries to actions in order of time. The nodes and tasks they name must exist by then.
 */
import { nearestName } from '../document/nearest-name.ts'
import { namesIn } from './placeholders.ts'
import type { Refuse } from '../document/refusal.ts'
import type { OperatorAction, OperatorMethod, ScenarioNode } from './scenario.ts'
import type { ScenarioDocument } from './schema.ts'

type ActionFields = ScenarioDocument['operator'][number]

/** Above this number of names, no nearest name is suggested. */
const MAX_SEARCHED_NAMES = 1000

export function operatorOf(
  actions: readonly ActionFields[],
  nodes: readonly ScenarioNode[],
  refuse: Refuse,
): OperatorAction[] {
  // The sort is stable: actions at one instant keep the order of the file.
  const inOrder = actions
    .map((fields, index) => ({ fields, index, action: actionOf(fields) }))
    .toSorted((a, b) => a.action.atMs - b.action.atMs)
  const nodeNames = new Set(nodes.map((node) => node.name))
  const taskNames = new Set<string>()
  for (const { index, action } of inOrder) {
    for (const place of ['path', 'body', 'answer'] as const) {
      const key = place === 'path' ? action.method : place
      for (const { kind, name } of namesIn(action[place])) {
        const known = kind === 'node' ? nodeNames : taskNames
        if (!known.has(name)) refuse(['operator', index, key], unknownDetail(kind, name, known))
      }
    }
    if (action.as === undefined) continue
    if (taskNames.has(action.as))
      refuse(
        ['operator', index, 'as'],
        `${action.as} is the name of an earlier action's task, too; each needs its own`,
      )
    taskNames.add(action.as)
  }
  return inOrder.map(({ action }) => action)
}

function actionOf(fields: ActionFields): OperatorAction {
  const [method, path] = methodAndPath(fields)
  const headers = headersOf(fields)
  return {
    atMs: fields.at,
    method,
    path,
    body: 'body' in fields ? fields.body : null,
    expect: fields.expect === undefined ? 'accepted' : (fields.expect ?? 'any'),
    ...('answer' in fields ? { answer: fields.answer } : {}),
    ...('as' in fields && fields.as !== null ? { as: fields.as } : {}),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  }
}

function methodAndPath(action: ActionFields): readonly [OperatorMethod, string] {
  if ('get' in action) return ['get', action.get]
  if ('put' in action) return ['put', action.put]
  if ('post' in action) return ['post', action.post]
  if ('patch' in action) return ['patch', action.patch]
  return ['delete', action.delete]
}

function headersOf(fields: ActionFields): Readonly<Record<string, string>> {
  const ifMatch = 'if_match' in fields ? fields.if_match : null
  const key = 'idempotency_key' in fields ? fields.idempotency_key : null
  return {
    ...(ifMatch === null ? {} : { 'if-match': ifMatch }),
    ...(key === null ? {} : { 'idempotency-key': key }),
  }
}

function unknownDetail(kind: 'node' | 'task', name: string, known: ReadonlySet<string>): string {
  const near = nearestName(name, [...known].slice(0, MAX_SEARCHED_NAMES))
  const what =
    kind === 'node' ? `the fleet has no node ${name}` : `no earlier action names a task ${name} with as`
  return `${what}${near === null ? '' : `; did you mean ${near}?`}`
}
