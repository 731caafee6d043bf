/**
 * `make mutants`: breaks each rule in turn; a seed of `sim fuzz` must catch it, or else the scenario or test
 * written for it. Catching seeds are kept in caught.json, so that the next run tries them first; vain.json
 * has, for mutants that only a directed scenario or test catches, the number of seeds that missed them: seeds
 * are searched again only with `--again` (the former spelling also works until the next release).
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hunt, tryDirected, type Catch } from './hunt.ts'
import { MUTANTS } from './mutants.ts'
import { locate } from './locate.ts'
import type { Edit, Mutant } from './mutant.ts'

const CAUGHT_FILE = join(import.meta.dirname, 'caught.json')
const VAIN_FILE = join(import.meta.dirname, 'vain.json')
const ROOT = join(import.meta.dirname, '../..')

const values = readArguments()

const caught = numbersIn(CAUGHT_FILE)
const vain = numbersIn(VAIN_FILE)
const wanted = MUTANTS.filter(
  ({ name, rule }) => name.startsWith(values.only) && (values.rule === '' || rule === values.rule),
)
const queue = [...wanted]
const results = new Map<string, Catch>()
await Promise.all(Array.from({ length: Number(values.jobs) }, work))
report()
if ([...results.values()].some(({ by }) => by === null)) process.exitCode = 1

function readArguments() {
  try {
    return parseArgs({
      options: {
        seeds: { type: 'string', default: '10000' },
        minutes: { type: 'string', default: '3' },
        jobs: { type: 'string', default: '2' },
        only: { type: 'string', default: '' },
        rule: { type: 'string', default: '' },
        again: { type: 'boolean', default: false },
        anew: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exit(2)
  }
}

async function work(): Promise<void> {
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const found = (await noticedAsBefore(mutant)) ?? (await hunted(mutant))
    results.set(mutant.name, found)
    process.stdout.write(`${lineOf(mutant, found)}\n`)
    keep(mutant, found)
  }
}

function hunted(mutant: Mutant): Promise<Catch> {
  const maxMs = 60_000 * Number(values.minutes)
  return hunt(mutant, { maxSeeds: Number(values.seeds), maxMs, knownSeed: caught[mutant.name] ?? null })
}

/** Null: a seed must be searched for. */
async function noticedAsBefore(mutant: Mutant): Promise<Catch | null> {
  const seeds = vain[mutant.name]
  if (values.again || values.anew || seeds === undefined || mutant.directed === undefined) return null
  const rule = await tryDirected(mutant, mutant.directed)
  return rule === null ? null : { mutant: mutant.name, by: mutant.directed, rule, seeds }
}

function keep({ name }: Mutant, { by, seeds }: Catch): void {
  if (by !== null && 'seed' in by) caught[name] = by.seed
  else delete caught[name]
  if (by !== null && !('seed' in by)) vain[name] = seeds
  else delete vain[name]
  write(CAUGHT_FILE, caught)
  write(VAIN_FILE, vain)
}

function write(file: string, numbers: Readonly<Record<string, number>>): void {
  const sorted = Object.fromEntries(Object.entries(numbers).sort(([a], [b]) => (a < b ? -1 : 1)))
  writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`)
}

function numbersIn(file: string): Record<string, number> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>
  } catch {
    return {}
  }
}

function report(): void {
  const all = [...results.values()]
  const bySeed = all.filter(({ by }) => by !== null && 'seed' in by).length
  const directed = all.filter(({ by }) => by !== null && !('seed' in by)).length
  process.stdout.write(
    `${all.length} mutants: ${bySeed} caught by a seed, ${directed} by a directed scenario or test, ` +
      `${all.length - bySeed - directed} NOT caught\n`,
  )
}

function lineOf(mutant: Mutant, { by, rule, seeds }: Catch): string {
  const [first] = mutant.edits
  const place = first === undefined ? '' : `${first.file}:${lineNumberOf(first)}`
  const head = `${mutant.rule.padEnd(10)} ${mutant.name.padEnd(38)} ${place.padEnd(44)}`
  if (by === null) return `${head} NOT caught by ${seeds} seeds`
  if ('seed' in by) return `${head} seed ${by.seed} (${rule}), after ${seeds}`
  return `${head} ${'scenario' in by ? `scenario ${by.scenario}` : by.test} (${rule}); not by ${seeds} seeds`
}

function lineNumberOf({ file, inside, find }: Edit): number {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return text.slice(0, locate(text, inside, find).start).split('\n').length
}
