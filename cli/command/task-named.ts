/** The task that an argument or option of a command names. */
import type { HeadroomClient, Task } from '../../clients/typescript/client.ts'
import { isFinal } from '../../controller/model/task.ts'
import { MIN_TASK_ID_PREFIX } from '../../protocol/limits.ts'
import { CommandFailure, EXIT_NOT_FOUND, UsageError } from '../../services/exit-codes.ts'

export const TASK_ARGUMENT = 'task ID, ID prefix (at least 4 characters), or the name of one of your tasks'

/** Maximum items of one page. */
const PAGE = 200
/** Tasks whose name or id matches in part, read to find one that matches exactly. */
const MAX_READ = 2_000
const MAX_CANDIDATES = 5
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Returns the id of the task that the text names.
 * 1. A whole id, of a task that may not exist.
 * 2. Four or more characters at the beginning of one id.
 * 3. The name of one open task of the caller; if none is open, of the one that was submitted last.
 * @throws CommandFailure when no task, UsageError when more than one task matches; both name candidates
 */
export async function taskNamed(client: HeadroomClient, text: string): Promise<string> {
  if (UUID.test(text)) return text.toLowerCase()
  if (text === '') throw new UsageError('the task ID or name must not be empty')
  const found = await foundBy(client, text)
  const exact = found.find(({ id }) => id === text)
  if (exact !== undefined) return exact.id
  const named = found.filter(({ name }) => name === text)
  const own = named.length === 0 ? [] : await ofCaller(client, named)
  const open = own.filter(({ state }) => !isFinal(state))
  const last = own.toSorted((a, b) => b.seq - a.seq).slice(0, 1)
  const matching = new Set([
    ...found.filter(({ id }) => text.length >= MIN_TASK_ID_PREFIX && id.startsWith(text)),
    ...(open.length > 0 ? open : last),
  ])
  const [only, second] = matching
  if (only === undefined) throw notFound(text, named, found)
  if (second === undefined) return only.id
  throw new UsageError(
    `${matching.size} tasks match ${JSON.stringify(text)}: use the task ID. ${listed([...matching])}`,
  )
}

async function foundBy(client: HeadroomClient, text: string): Promise<readonly Task[]> {
  const found: Task[] = []
  for await (const task of client.tasks.each({ q: text, limit: PAGE })) {
    found.push(task)
    if (found.length === MAX_READ)
      throw new UsageError(`more than ${MAX_READ} tasks match ${JSON.stringify(text)}: use the task ID`)
  }
  return found
}

/** Open tasks of the caller with exactly this name. */
export async function openTasksNamed(client: HeadroomClient, name: string): Promise<readonly Task[]> {
  const found = await foundBy(client, name)
  const open = found.filter((task) => task.name === name && !isFinal(task.state))
  return open.length === 0 ? [] : ofCaller(client, open)
}

/** Without authentication every task is the caller's. */
async function ofCaller(client: HeadroomClient, tasks: readonly Task[]): Promise<readonly Task[]> {
  const caller = (await client.session()).caller?.name ?? null
  return caller === null ? tasks : tasks.filter(({ owner }) => owner === caller)
}

/** Offers tasks of that name, otherwise those whose name contains the text. */
function notFound(text: string, named: readonly Task[], similar: readonly Task[]): CommandFailure {
  const why = named.length === 0 ? '' : ': you have no task with this name'
  const offered = named.length === 0 ? similar : named
  const list = offered.length === 0 ? '' : ` ${listed(offered)}`
  return new CommandFailure(`Task ${JSON.stringify(text)} not found${why}.${list}`, EXIT_NOT_FOUND)
}

/** Example: `Candidates: 0b6f4c1e-… (train, running, owner ada), and 2 more.` */
function listed(tasks: readonly Task[]): string {
  const shown = tasks
    .slice(0, MAX_CANDIDATES)
    .map(
      ({ id, name, state, owner }) => `${id} (${name}, ${state}${owner === null ? '' : `, owner ${owner}`})`,
    )
  const more = tasks.length - shown.length
  return `Candidates: ${[...shown, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')}.`
}
