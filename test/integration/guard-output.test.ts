/** The output that a guard keeps, without delaying its task. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { attemptFolder, guardWorld, newGuardFolder, until } from '../support/guard-world.ts'

const MIB = 1024 * 1024

it(
  'A fast producer on both streams is never blocked, and its output stays within the limit',
  { timeout: 300_000 },
  async () => {
    const limit = 16 * MIB
    const world = await guardWorld()
    let most = 0
    const sampling = setInterval(
      () => (most = Math.max(most, outputBytes(attemptFolder(world.folder, 'fast')))),
      5,
    )
    onTestFinished(() => clearInterval(sampling))
    const script =
      'head -c 209715200 /dev/zero >&2 & head -c 209715200 /dev/zero; wait; echo last; echo last >&2'
    await world.sh('fast', script, { maxOutputBytes: limit })
    expect((await world.exitOf('fast')).exit).toEqual({ code: 0, signal: null })
    const kept = outputBytes(attemptFolder(world.folder, 'fast'))
    expect(Math.max(most, kept)).toBeLessThanOrEqual(limit)
    expect(kept).toBeGreaterThan(limit * 0.75)
    for (const stream of ['stdout', 'stderr'] as const) {
      const end = await world.guards.readOutput('fast', 1, stream, 209_715_200, 100)
      expect({ stream, tail: end?.data.toString(), isEnded: end?.isEnded }).toEqual({
        stream,
        tail: 'last\n',
        isEnded: true,
      })
    }
  },
)

it('A quiet stream keeps its output while the other stream fills the limit many times', async () => {
  const world = await guardWorld()
  await world.sh('quiet', 'echo rare >&2; head -c 1000000 /dev/zero; echo more >&2', {
    maxOutputBytes: 16_384,
  })
  await world.exitOf('quiet')
  expect(await world.output('quiet', 'stderr')).toBe('rare\nmore\n')
})

it('A disk that hangs costs output, marked in the stream, and does not block the task', async () => {
  const program = hangingProgram(await guardProgram())
  const world = await guardWorld({ program })
  const gate = newGuardFolder()
  const script =
    `head -c 4000000 /dev/zero; : > ${gate}/written; while [ ! -e ${gate}/on ]; do sleep 0.05; done; ` +
    'echo end'
  await world.sh('hung', script, { maxOutputBytes: 16 * MIB })
  await until('the task has written all of it', () => existsSync(`${gate}/written`))
  const disk = openSync(
    `${attemptFolder(world.folder, 'hung')}/stdout.0`,
    constants.O_RDONLY | constants.O_NONBLOCK,
  )
  onTestFinished(() => closeSync(disk))
  let text = ''
  const drained = () => {
    text += readAvailable(disk)
    return text
  }
  await until('what was buffered is written', () => drained().length >= 200_000)
  writeFileSync(`${gate}/on`, '')
  await until('the output after the gap', () => drained().endsWith('end\n'))
  const [, zeros = '', missing] =
    /^(\0+)\n\[headroom: (\d+) bytes of output are missing here\]\nend\n$/.exec(text) ?? []
  expect(zeros.length + Number(missing)).toBe(4_000_000)
  expect((await world.exitOf('hung')).exit).toEqual({ code: 0, signal: null })
})

it('An ended attempt above the limit for ended attempts keeps its latest output', async () => {
  const world = await guardWorld({ endedOutputs: { maxTasks: 10, maxBytes: 24_000 } })
  await world.sh('large', 'head -c 40000 /dev/zero; echo last', { maxOutputBytes: 65_536 })
  await world.exitOf('large')
  world.guards.forget('large', 1)
  await until('it is within the limit', () => outputBytes(attemptFolder(world.folder, 'large')) <= 24_000)
  const kept = await world.guards.readOutput('large', 1, 'stdout', 0, MIB)
  expect(kept?.offset).toBeGreaterThan(0)
  expect(kept?.data.toString().endsWith('last\n')).toBe(true)
})

function outputBytes(folder: string): number {
  if (!existsSync(folder)) return 0
  const names = readdirSync(folder).filter((name) => /^std(out|err)\./.test(name))
  return names.reduce(
    (sum, name) => sum + (statSync(`${folder}/${name}`, { throwIfNoEntry: false })?.size ?? 0),
    0,
  )
}

/** The guard with a fifo as its first file: opening a fifo without a reader hangs. */
function hangingProgram(program: string): string {
  const path = `${newGuardFolder()}/hanging-guard`
  writeFileSync(
    path,
    `#!/bin/sh\n${execFileSync('which', ['mkfifo']).toString().trim()} "$1/stdout.0"\nexec ${program} "$@"\n`,
  )
  chmodSync(path, 0o755)
  return path
}

function readAvailable(file: number): string {
  const data = Buffer.alloc(MIB)
  try {
    return data.subarray(0, readSync(file, data)).toString('latin1')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return ''
    throw error
  }
}
