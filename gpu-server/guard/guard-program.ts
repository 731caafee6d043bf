import { execFile } from 'node:child_process'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { GuardFault, codeOf } from './guard-fault.ts'
import { errorText } from '../../protocol/error-text.ts'

const run = promisify(execFile)

/**
 * Returns the guard program; compiles it first when it is missing or older than its sources (some 2 s, once).
 * `make guard` does the same.
 * @param folder where its sources are; the program is written to build/ in it
 */
export async function guardProgram(folder = fileURLToPath(new URL('.', import.meta.url))): Promise<string> {
  const program = `${folder}build/headroom-guard`
  const sources = await sourcesIn(folder)
  const builtAt = await changedAt(program)
  const isFresh =
    builtAt !== null &&
    Math.max(...(await Promise.all(sources.map(changedAt))).map((at) => at ?? 0), 0) <= builtAt
  if (!isFresh) await compile(folder, sources, program)
  return program
}

async function sourcesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => [])
  return names.filter((name) => /\.[ch]$/.test(name)).map((name) => folder + name)
}

async function changedAt(path: string): Promise<number | null> {
  const about = await stat(path).catch(() => null)
  return about?.mtimeMs ?? null
}

/** Compiles to a unique name first: several processes may compile at once. */
async function compile(folder: string, sources: readonly string[], program: string): Promise<void> {
  const made = `${program}.${process.pid}.${process.hrtime.bigint()}`
  const files = sources.filter((path) => path.endsWith('.c'))
  if (files.length === 0) throw new GuardFault(`the guard program ${program} and its sources are missing`)
  const flags = [`@${folder}cc-flags`, '-o', made, ...files]
  try {
    await mkdir(`${folder}build`, { recursive: true })
    await run('cc', ['-static', ...flags]).catch(async (error: unknown) => {
      if (codeOf(error) === 'ENOENT') throw error
      await run('cc', flags)
    })
    await rename(made, program)
  } catch (error) {
    await rm(made, { force: true })
    throw new GuardFault(`cannot build the guard program ${program}: ${whyNot(error)}`, { cause: error })
  }
}

function whyNot(error: unknown): string {
  if (codeOf(error) === 'ENOENT')
    return 'there is no C compiler (cc); install gcc, or run `make guard` on a machine that has one'
  const text = errorText(error)
  return text.split('\n').find((line) => /error|EACCES|EROFS/.test(line)) ?? text.split('\n')[0] ?? ''
}
