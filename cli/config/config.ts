/** `headroom config …`. */
import { inMib } from '../../controller/model/words.ts'
import { grouped } from '../../protocol/grouped-digits.ts'
import type { ChangedConfig, Config, ConfigFields, Revision } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { openClient, pairsOf, type CommandOptions } from '../command/session.ts'
import { settingValue } from '../command/setting-values.ts'
import { plural } from '../output/figures.ts'
import { printList, printOne, type Column, type Field } from '../output/table.ts'

export interface ChangeOptions extends CommandOptions {
  readonly dryRun?: boolean
}

export interface HistoryOptions extends CommandOptions {
  readonly last: number
}

const PAGE = 200

/** Prints only the value if one field is named, for scripts. */
export async function configGet(
  field: string | undefined,
  { output, ...server }: CommandOptions,
): Promise<number> {
  const config = await openClient(server).config.get()
  if (field === undefined) {
    await print(config, output)
    return EXIT_OK
  }
  if (!Object.hasOwn(config, field)) {
    throw new UsageError(
      `unknown setting ${JSON.stringify(field)}; use one of ${Object.keys(config).join(', ')}`,
    )
  }
  process.stdout.write(`${JSON.stringify(config[field as keyof Config]).replace(/^"(.*)"$/, '$1')}\n`)
  return EXIT_OK
}

export async function configSet(
  texts: readonly string[],
  { output, dryRun = false, ...server }: ChangeOptions,
): Promise<number> {
  const change = Object.fromEntries(
    [...pairsOf(texts)].map(([name, text]) => [name, settingValue(name, text)]),
  )
  await printChanged(await openClient(server).config.set(change as Partial<ConfigFields>, { dryRun }), output)
  return EXIT_OK
}

/** Newest last, like events. */
export async function configHistory({ output, last, ...server }: HistoryOptions): Promise<number> {
  const client = openClient(server)
  const revisions: Revision[] = []
  for (let before: number | null | undefined; before !== null && revisions.length < last;) {
    const limit = Math.min(PAGE, last - revisions.length)
    const page = await client.config.revisions({ limit, ...(before === undefined ? {} : { before }) })
    revisions.push(...page.items)
    before = page.next_before
  }
  await printList(revisions.toReversed(), REVISION_COLUMNS, output)
  return EXIT_OK
}

export async function configRestore(
  text: string,
  { output, dryRun = false, ...server }: ChangeOptions,
): Promise<number> {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new UsageError(`${JSON.stringify(text)} must be a revision number (see headroom config history)`)
  await printChanged(await openClient(server).config.restore(Number(text), { dryRun }), output)
  return EXIT_OK
}

interface Setting {
  readonly name: string
  readonly value: string
}

async function print(config: object, output: CommandOptions['output']): Promise<void> {
  if (output !== 'table' && output !== 'wide') return printOne(config, [], output)
  const settings = Object.entries(config).map(([name, value]): Setting => ({
    name,
    value: value === null ? 'null' : String(value),
  }))
  await printList(settings, COLUMNS, output)
}

/** Tables show the settings, then the exceeded limits; for a dry run its impact instead. */
async function printChanged(changed: ChangedConfig, output: CommandOptions['output']): Promise<void> {
  if (output !== 'table' && output !== 'wide') return printOne(changed, [], output)
  const { over, impact, dry_run: _dryRun, ...config } = changed
  if (impact !== undefined) return printOne(changed, impactFields(impact), output)
  await print(config, output)
  const line = overLine(over)
  if (line !== null) process.stderr.write(`${line}\n`)
}

const COLUMNS: readonly Column<Setting>[] = [
  { title: 'SETTING', of: ({ name }) => name },
  { title: 'VALUE', of: ({ value }) => value },
]

const REVISION_COLUMNS: readonly Column<Revision>[] = [
  { title: 'REVISION', isNumber: true, of: ({ revision }) => revision },
  { title: 'AT', of: ({ at }) => at },
  { title: 'BY', of: ({ author }) => author },
  { title: 'CHANGED', of: (revision) => changesIn(revision) },
]

function changesIn({ changed, before, after }: Revision): string {
  if (before === null) return `${plural(changed.length, 'setting')}, stored for the first time`
  const names = changed as readonly (keyof ConfigFields)[]
  if (names.length === 0) return 'nothing'
  return names.map((name) => `${name} ${String(before[name])} → ${String(after[name])}`).join(', ')
}

type Impact = NonNullable<ChangedConfig['impact']>

/** Maximum names in a line. */
const MAX_NAMES = 5
/** Commands accept such a prefix instead of an id. */
const PREFIX_CHARACTERS = 8

export function impactFields(impact: Impact): readonly Field[] {
  const { before, after } = impact.total
  const { pending } = impact
  const fields: Field[] = [
    ['dry run', 'nothing was changed'],
    [
      'commit limit',
      `${change(before.commit_limit_mib, after.commit_limit_mib)} on ${plural(impact.node_count, 'node')}`,
    ],
    ['schedulable', change(before.effective_schedulable_mib, after.effective_schedulable_mib)],
    ['over the limit', change(before.over_committed_mib, after.over_committed_mib)],
    ['below the reserve', change(before.reserve_deficit_mib, after.reserve_deficit_mib)],
    ['affected GPUs', `${impact.gpu_over_count} over the limit or below the reserve after the change`],
    ['immediately', cycleWords(impact)],
    [
      'would fit',
      `${plural(pending.would_fit, 'pending task')} for which no node has room now, each considered ` +
        `separately${some(pending.would_fit_ids)}`,
    ],
    ['could never be placed', `${pending.infeasible}${some(pending.infeasible_ids)}`],
    [
      'could not return',
      `${impact.residency_impossible_count}${some(impact.residency_impossible.map(({ task_id: id }) => id))}`,
    ],
  ]
  if (pending.cut)
    fields.push(['evaluated', `${pending.looked_at} of ${pending.of} pending tasks (time limit reached)`])
  fields.push([
    'forecast',
    impact.forecast === null ? impact.forecast_unavailable_because : impact.forecast.sentence,
  ])
  return fields
}

function cycleWords({ next_cycle: cycle, pending }: Impact): string {
  return cycle === null ? 'not simulated: too many open tasks' : startsWords(cycle, pending.of)
}

/** Describes the next cycle: `5 of 18 pending tasks would start: 2 now, 3 after swaps`. */
export function startsWords(cycle: NonNullable<Impact['next_cycle']>, pending: number): string {
  const { swap_outs: swapOuts, swap_out_mib: mib } = cycle
  const leave = swapOuts === 0 ? '' : `; ${plural(swapOuts, 'task')} would be swapped out, ${inMib(mib)}`
  return `${placedWords(cycle, pending)}${leave}`
}

function placedWords(
  { starts, starts_after_swaps: later }: NonNullable<Impact['next_cycle']>,
  pending: number,
): string {
  const placed = starts + later
  if (pending === 0 && placed === 0) return 'no pending task waits for a GPU'
  if (placed === 0)
    return pending === 1
      ? 'the pending task would still wait'
      : `none of the ${pending} pending tasks would start`
  const tasks = placed < pending ? `${placed} of ${pending} pending tasks` : plural(placed, 'pending task')
  if (later === 0) return `${tasks} would start now`
  if (starts === 0) return `${tasks} would start after swaps`
  return `${tasks} would start: ${starts} now, ${later} after swaps`
}

/** `81,920 → 98,304 MiB`. */
function change(before: number, after: number): string {
  return `${grouped(before)} → ${inMib(after)}`
}

/** Null when no GPU is over its limit. */
export function overLine({
  gpus,
  over_committed_mib: over,
  reserve_deficit_mib: deficit,
}: ChangedConfig['over']): string | null {
  if (gpus === 0) return null
  return (
    `${gpus} ${gpus === 1 ? 'GPU is' : 'GPUs are'} over the limit: ${inMib(over)} over-committed, ` +
    `${inMib(deficit)} resident in the reserve; no task is swapped out because of this`
  )
}

function some(ids: readonly string[]): string {
  if (ids.length === 0) return ''
  const shown = ids.slice(0, MAX_NAMES).map((id) => id.slice(0, PREFIX_CHARACTERS))
  return ` (${shown.join(', ')}${ids.length > MAX_NAMES ? ', …' : ''})`
}
