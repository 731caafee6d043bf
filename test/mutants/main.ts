/**
 * `make mutants`: each rule is taken out in turn, and a seed of `sim fuzz` must notice, or else the scenario or test that is written for it. Catching seeds
 * are kept in caught.json, so that the next run tries them first.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { hunt, type Catch } from './hunt.ts'
import { MUTANTS } from './mutants.ts'
import type { Mutant } from './mutant.ts'

export const CAUGHT_FILE = join(import.meta.dirname, 'caught.json')
const ROOT = join(import.meta.dirname, '../..')

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    minutes: { type: 'string', default: '3' },
    jobs: { type: 'string', default: '2' },
    only: { type: 'string', default: '' },
    rule: { type: 'string', default: '' },
  },
})

const caught = readCaught()
const wanted = MUTANTS.filter(({ name, rule }) => name.startsWith(values.only) && (values.rule === '' || rule === values.rule))
const queue = [...wanted]
const results = new Map<string, Catch>()
await Promise.all(Array.from({ length: Number(values.jobs) }, work))
report()
if ([...results.values()].some(({ by }) => by === null)) process.exitCode = 1

async function work(): Promise<void> {
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const known = caught[mutant.name] ?? null
    const found = await hunt(mutant, { maxSeeds: Number(values.seeds), maxMs: 60_000 * Number(values.minutes), knownSeed: known })
    results.set(mutant.name, found)
    process.stdout.write(`${lineOf(mutant, found)}\n`)
    if (found.by !== null && 'seed' in found.by) caught[mutant.name] = found.by.seed
    else delete caught[mutant.name]
    writeFileSync(
      CAUGHT_FILE,
      `${JSON.stringify(Object.fromEntries(Object.entries(caught).sort(([a], [b]) => (a < b ? -1 : 1))), null, 2)}\n`,
    )
  }
}

function readCaught(): Record<string, number> {
  try {
    return JSON.parse(readFileSync(CAUGHT_FILE, 'utf8')) as Record<string, number>
  } catch {
    return {}
  }
}

function report(): void {
  const all = [...results.values()]
  const bySeed = all.filter(({ by }) => by !== null && 'seed' in by).length
  const directed = all.filter(({ by }) => by !== null && !('seed' in by)).length
  process.stdout.write(
    `${all.length} mutants: ${bySeed} caught by a seed, ${directed} by a directed scenario or test, ${all.length - bySeed - directed} NOT caught\n`,
  )
}

function lineOf(mutant: Mutant, { by, rule, seeds }: Catch): string {
  const [first] = mutant.edits
  const place = first === undefined ? '' : `${first.file}:${lineNumberOf(first.file, first.find)}`
  const head = `${mutant.rule.padEnd(10)} ${mutant.name.padEnd(38)} ${place.padEnd(44)}`
  if (by === null) return `${head} NOT caught by ${seeds} seeds`
  if ('seed' in by) return `${head} seed ${by.seed} (${rule}), after ${seeds}`
  return `${head} ${'scenario' in by ? `scenario ${by.scenario}` : by.test} (${rule}); not by ${seeds} seeds`
}

function lineNumberOf(file: string, find: string): number {
  const text = readFileSync(join(ROOT, file), 'utf8')
  return text.slice(0, text.indexOf(find)).split('\n').length
}
