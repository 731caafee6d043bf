/**
 * The tutorials, literally: every command of their Markdown is typed into the shell of a clean Debian, and
 * every output that they show is compared (test/tutorials/tutorial-blocks.ts). `make test-tutorial` runs it.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { copyDebian, whyNoDebian } from '../support/debian-root.ts'
import { DebianShell, type Answer } from './debian-shell.ts'
import { blocksOf, isExpected, type Block } from './tutorial-blocks.ts'

const ROOT = join(import.meta.dirname, '../..')
const TUTORIALS = join(ROOT, 'docs/tutorials')
const BLOCK_WITHIN_MS = 180_000
const RETRY_EVERY_MS = 1000
const run = promisify(execFile)

const names = readdirSync(TUTORIALS).filter((name) => name.endsWith('.md'))
const blocks = new Map(names.map((name) => [name, blocksOf(readFileSync(join(TUTORIALS, name), 'utf8'))]))
const why = whyNoDebian([])

// A skipped tutorial is not a tested one: `make test-tutorial` fails where it cannot test.
it('finds what a clean Debian needs on this host', () => expect(why).toBeNull())

describe.skipIf(why !== null)('the tutorial', { timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-tutorials-'))
  const seconds = new Map<string, number>()
  const shells: DebianShell[] = []

  beforeAll(async () => {
    const began = performance.now()
    // A make process inside `make test-tutorial` would inherit its flags.
    const { MAKEFLAGS: _MAKEFLAGS, MAKELEVEL: _MAKELEVEL, ...env } = process.env
    if (process.env['TUTORIAL_PACKAGES'] !== 'built')
      for (const commands of inCheckout()) await run('bash', ['-ec', commands], { cwd: ROOT, env })
    process.stdout.write(`packages were built after ${secondsSince(began)} s\n`)
  }, 900_000)
  afterEach(() => shells.splice(0).forEach((shell) => shell.close()))
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))

  it.each(names)('%s works as it is printed', async (name) => {
    const start = performance.now()
    const root = join(folder, name)
    await copyDebian(root)
    // The names of hosts are resolved as on this host.
    cpSync('/etc/resolv.conf', join(root, 'etc/resolv.conf'))
    for (const packages of ['dist-deb', 'dist/python'])
      cpSync(join(ROOT, packages), join(root, 'root'), { recursive: true })
    const shell = new DebianShell(root)
    shells.push(shell)
    for (const block of blocks.get(name)?.filter(({ where }) => where === 'debian') ?? [])
      expect(await problemOf(shell, block), `docs/tutorials/${name}:${block.line}`).toBeNull()
    seconds.set(name, (performance.now() - start) / 1000)
    process.stdout.write(`docs/tutorials/${name}: ${secondsSince(start)} s\n`)
  })

  it('ran each within five minutes, without the build of the packages', () => {
    expect([...seconds].filter(([, each]) => each > 300)).toEqual([])
  })
})

/** The commands in the checkout, each once. */
function inCheckout(): ReadonlySet<string> {
  const all = [...blocks.values()].flat()
  return new Set(all.filter(({ where }) => where === 'checkout').map(({ commands }) => commands))
}

/** Types a block, repeatedly if its tutorial says so. Returns what is wrong, or null. */
async function problemOf(shell: DebianShell, block: Block): Promise<string | null> {
  const deadline = performance.now() + BLOCK_WITHIN_MS
  for (;;) {
    const problem = problemIn(await shell.type(block.commands, block.retry, BLOCK_WITHIN_MS), block)
    if (problem === null || !block.retry || performance.now() > deadline) return problem
    await new Promise((resolve) => setTimeout(resolve, RETRY_EVERY_MS))
  }
}

function problemIn({ status, output }: Answer, { commands, output: expected }: Block): string | null {
  if (status !== 0) return `a command failed:\n${commands}\noutput:\n${output}`
  if (expected === null || isExpected(output, expected)) return null
  return `the output differs.\ncommands:\n${commands}\nexpected:\n${expected}\noutput:\n${output}`
}

function secondsSince(start: number): string {
  return ((performance.now() - start) / 1000).toFixed(0)
}
