/** `headroom events`. */
import type { EventPage } from '../../controller/api/observe/event-schema.ts'
import type { Event, EventFilter, EventsQuery, HeadroomClient } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import type { OutputFormat } from '../output/formats.ts'
import { visible, visibleJson } from '../output/terminal-text.ts'
import { printList, type Column } from '../output/table.ts'
import { nodeNamed, openClient, type CommandOptions } from '../command/session.ts'
import { taskNamed } from '../command/task-named.ts'
import { untilInterrupted } from '../command/interrupts.ts'
import { EventNames } from './event-names.ts'

export interface EventsOptions extends CommandOptions {
  readonly follow?: boolean
  readonly after?: number
  readonly last: number
  readonly task?: string
  readonly node?: string
  readonly kind?: string
}

/** Maximum events of one request. */
const PAGE = 200

export async function events({
  output,
  follow,
  after,
  last,
  task,
  node,
  kind,
  ...server
}: EventsOptions): Promise<number> {
  const client = openClient(server)
  const filter = {
    ...(task === undefined ? {} : { task: await taskNamed(client, task) }),
    ...(kind === undefined ? {} : { kind }),
    ...(node === undefined ? {} : { node: (await nodeNamed(client, node)).node_id }),
  }
  const { shown, reached } =
    after === undefined
      ? await newest(client, filter, last)
      : await from(client, filter, after, follow === true ? 0 : last)
  const isTable = output === 'table' || output === 'wide'
  const names = new EventNames(client)
  if (isTable) await names.learn(shown)
  if (follow !== true) {
    await printList(shown, columns(names), output)
    return EXIT_OK
  }
  const print = isTable ? linePrinter(names, output === 'wide') : documentPrinter(names, output)
  for (const event of shown) await print(event)
  await untilInterrupted(async (signal) => {
    const onInterrupted = (error: Error): void =>
      void process.stderr.write(`${visible(error.message)}; trying again\n`)
    for await (const event of client.events.follow({ ...filter, after: reached, signal, onInterrupted }))
      await print(event)
  })
  return EXIT_OK
}

interface Found {
  readonly shown: readonly Event[]
  /** Position from which to follow. */
  readonly reached: number
}

/** Returns the last `count` matching events, oldest first. */
async function newest(client: HeadroomClient, filter: EventFilter, count: number): Promise<Found> {
  const shown: Event[] = []
  let before: number | null = null
  let reached = 0
  while (shown.length < count) {
    const position: EventsQuery = before === null ? {} : { before }
    const page: EventPage = await client.events.list({
      ...filter,
      ...position,
      order: 'newest',
      limit: Math.min(PAGE, count - shown.length),
    })
    // Following starts here: later events were not in the first page.
    if (before === null) reached = page.items[0]?.seq ?? page.last_seq
    shown.push(...page.items)
    before = page.next_before
    if (before === null) break
  }
  return { shown: shown.reverse(), reached }
}

/** Returns at most `count` events after that seq, oldest first. */
async function from(
  client: HeadroomClient,
  filter: EventFilter,
  after: number,
  count: number,
): Promise<Found> {
  const shown: Event[] = []
  let reached = after
  while (shown.length < count) {
    const page = await client.events.list({
      ...filter,
      after: reached,
      limit: Math.min(PAGE, count - shown.length),
    })
    shown.push(...page.items)
    reached = page.next_after
    if (page.items.length < PAGE) break
  }
  return { shown, reached }
}

function columns(names: EventNames): readonly Column<Event>[] {
  return [
    { title: 'SEQ', isNumber: true, of: (event) => event.seq },
    { title: 'AT', of: (event) => event.at },
    { title: 'EVENT', of: (event) => event.kind },
    { title: 'TASK', of: (event) => names.of(event.task_id) },
    { title: 'NODE', of: (event) => names.of(event.node_id) },
    { title: 'CAUSED BY', isNumber: true, isWide: true, of: (event) => event.caused_by },
    { title: 'DATA', isWide: true, of: (event) => JSON.stringify(event.data) },
  ]
}

/** Columns cannot be sized for events that have not arrived yet. */
function linePrinter(names: EventNames, isWide: boolean): (event: Event) => Promise<void> {
  return async (event) => {
    await names.learn([event])
    const { seq, at, kind, caused_by: cause, data } = event
    const [task, node] = [names.of(event.task_id), names.of(event.node_id)]
    const more = isWide ? `  ${cause ?? '-'}  ${visible(JSON.stringify(data))}` : ''
    process.stdout.write(
      `${seq}  ${at}  ${visible(kind)}  ${visible(task ?? '-')}  ${visible(node ?? '-')}${more}\n`,
    )
  }
}

/** An endless list is one line per event in JSON, one document per event in YAML. */
function documentPrinter(names: EventNames, output: OutputFormat): (event: Event) => Promise<void> {
  if (output !== 'yaml')
    return async (event) => void process.stdout.write(`${visibleJson(JSON.stringify(event))}\n`)
  return async (event) => {
    process.stdout.write('---\n')
    await printList([event], columns(names), 'yaml')
  }
}
