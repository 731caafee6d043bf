/** Searches for a seed, or a directed scenario or test, that detects a mutant. */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { featuresOf } from '../../simulator/experiment/fuzz/draw.ts'
import type { Mutant } from './mutant.ts'

export interface Catch {
  readonly mutant: string
  /** What detected it, and by which rule; null if nothing did. */
  readonly by: { readonly seed: number } | { readonly scenario: string } | { readonly test: string } | null
  readonly rule: string | null
  /** Number of seeds tried, including the detecting one. */
  readonly seeds: number
}

export interface HuntOptions {
  readonly maxSeeds: number
  /** Maximum number of seeds. */
  readonly maxMs: number
  /** The seed that detected it in the previous hunt. */
  readonly knownSeed: number | null
}

const ROOT = join(import.meta.dirname, '../..')
const HOOK = join(import.meta.dirname, 'load-mutant.ts')
/** A world that takes longer for one seed does not end by itself. */
const SILENT_MS = 60_000

export async function hunt(mutant: Mutant, options: HuntOptions): Promise<Catch> {
  const found = await judgeInMutant(mutant, seedsFor(mutant, options), options.maxMs)
  if (found.rule !== null && found.last !== null)
    return { mutant: mutant.name, by: { seed: Number(found.last) }, rule: found.rule, seeds: found.tried }
  const directed = mutant.directed === undefined ? null : await tryDirected(mutant, mutant.directed)
  return {
    mutant: mutant.name,
    by: directed === null ? null : (mutant.directed ?? null),
    rule: directed,
    seeds: found.tried,
  }
}

/** The failure of a directed scenario or test, or null if it passes. */
export async function tryDirected(
  mutant: Mutant,
  directed: NonNullable<Mutant['directed']>,
): Promise<string | null> {
  if ('test' in directed) return testFails(mutant, directed.test)
  const file = scenarioFile(directed.scenario)
  if (!existsSync(file)) return null
  return (await judgeInMutant(mutant, [file], SILENT_MS)).rule
}

export function scenarioFile(name: string): string {
  const own = join(import.meta.dirname, 'scenarios', `${name}.scenario.yaml`)
  return existsSync(own) ? own : join(ROOT, 'scenarios', `${name}.scenario.yaml`)
}

/**
 * The known seed first, then those that draw the features the mutant likes (for policy rules: without
 * faults), then the others.
 */
function* seedsFor({ rule, likes = [] }: Mutant, { maxSeeds, knownSeed }: HuntOptions): Generator<string> {
  if (knownSeed !== null) yield String(knownSeed)
  const isOfWire = /^R\d/.test(rule)
  const isLiked = (seed: number): boolean => {
    const { on, faults } = featuresOf(seed)
    const drawn: ReadonlySet<string> = new Set([...on, ...faults])
    return (isOfWire || faults.length === 0) && (likes.length === 0 || likes.some((like) => drawn.has(like)))
  }
  for (let seed = 1; seed <= maxSeeds; seed++) if (isLiked(seed)) yield String(seed)
  for (let seed = 1; seed <= maxSeeds; seed++) if (!isLiked(seed)) yield String(seed)
}

/** Code that runs in a mutated product does not count as covered. */
function mutantEnv({ name }: Mutant): NodeJS.ProcessEnv {
  const { NODE_V8_COVERAGE: _coverage, ...env } = process.env
  return { ...env, MUTANT: name }
}

interface Found {
  /** The rule that detected the last one; `hangs` when it did not end, null when no rule did. */
  readonly rule: string | null
  readonly last: string | null
  readonly tried: number
}

function judgeInMutant(mutant: Mutant, cases: Iterable<string>, maxMs: number): Promise<Found> {
  const child = spawn(process.execPath, ['--import', HOOK, join(import.meta.dirname, 'judge-seeds.ts')], {
    cwd: ROOT,
    env: mutantEnv(mutant),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const queue = cases[Symbol.iterator]()
  const endsAt = Date.now() + maxMs
  let [last, tried]: [string | null, number] = [null, 0]
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors = `${errors}${chunk.toString()}`.slice(-4000)))
  return new Promise((resolve, reject) => {
    let alarm: NodeJS.Timeout | undefined
    const settle = (rule: string | null): void => {
      clearTimeout(alarm)
      child.removeAllListeners('exit')
      child.kill('SIGKILL')
      resolve({ rule, last, tried })
    }
    const next = (): void => {
      const each = Date.now() > endsAt ? { done: true as const, value: undefined } : queue.next()
      if (each.done === true) return settle(null)
      last = each.value
      tried += 1
      clearTimeout(alarm)
      alarm = setTimeout(() => settle('hangs'), SILENT_MS)
      child.stdin.write(`${last}\n`)
    }
    child.stdin.on('error', () => {})
    child.on('exit', (code) => {
      clearTimeout(alarm)
      if (last !== null && tried > 0 && code !== 0)
        reject(new Error(`mutant ${mutant.name} at ${last}: ${errors}`))
      else reject(new Error(`mutant ${mutant.name}: ${errors}`))
    })
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line === 'ok') next()
      else if (line.startsWith('caught ')) settle(line.slice(7))
    })
    next()
  })
}

/** The unchanged tests fail in the mutated product. */
function testFails(mutant: Mutant, test: string): Promise<string | null> {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', test, '--reporter=dot', '--bail=1'], {
    cwd: ROOT,
    env: { ...mutantEnv(mutant), NODE_OPTIONS: `--import ${HOOK}` },
    stdio: 'ignore',
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => resolve(code === 0 ? null : 'a test fails'))
  })
}
