import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { startTimeOf } from '../../gpu-server/guard/process-table.ts'
import {
  attemptFolder,
  guardWorld,
  isRoot,
  newGuardFolder,
  pidOf,
  shellSpec,
  until,
} from '../support/guard-world.ts'

describe('the control socket of a guard', () => {
  it('tolerates invalid data, floods, silence and too many connections', async () => {
    const world = await guardWorld()
    await world.sh('hostile', 'exec sleep 60')
    const path = `${attemptFolder(world.folder, 'hostile')}/socket`
    expect(await say(path, 'nonsense\n')).toBe('error unknown command\n')
    expect(await say(path, '\n\0\n\xff\xfe\n')).toBe('error unknown command\n'.repeat(3))
    expect(await say(path, 'leased 2\nleased\nkill \n')).toBe('error unknown command\n'.repeat(3))
    expect(await say(path, 'x'.repeat(64))).toBe('')
    expect(await say(path, 'x'.repeat(1 << 20))).toBe('')
    const silent = await Promise.all(Array.from({ length: 20 }, () => open(path)))
    await until('some are turned away', () => silent.filter((socket) => socket.destroyed).length >= 12)
    for (const socket of silent) socket.destroy()
    await world.guards.suspend('hostile', 1)
    await world.guards.resume('hostile', 1)
    world.guards.kill('hostile', 1)
    await world.exitOf('hostile')
  })

  it('drops a connection that sends and never reads', async () => {
    const world = await guardWorld()
    await world.sh('deaf', 'exec sleep 60')
    const socket = await open(`${attemptFolder(world.folder, 'deaf')}/socket`)
    socket.pause()
    const closed = new Promise<void>((resolve) =>
      socket.once('error', () => resolve()).once('close', () => resolve()),
    )
    const flood = (): void => {
      while (!socket.destroyed && socket.write('status\n'.repeat(1000))) continue
      if (!socket.destroyed) socket.once('drain', flood)
    }
    flood()
    await closed
    await world.guards.suspend('deaf', 1)
    world.guards.kill('deaf', 1)
    await world.exitOf('deaf')
  })

  it('is accessible only to its owner', async () => {
    const world = await guardWorld()
    await world.sh('private', 'exec sleep 60')
    expect(statSync(attemptFolder(world.folder, 'private')).mode & 0o777).toBe(0o700)
    world.guards.kill('private', 1)
    await world.exitOf('private')
  })
})

describe.runIf(isRoot)('a full disk', () => {
  it('costs output, which is counted, but neither the task nor its record', async () => {
    const folder = smallDisk(newGuardFolder())
    const world = await guardWorld({ folder })
    await world.sh('full', 'head -c 4000000 /dev/zero; head -c 1000 /dev/zero >&2; exit 6', {
      maxOutputBytes: 1 << 30,
    })
    expect((await world.exitOf('full')).exit).toEqual({ code: 6, signal: null })
    const record = readFileSync(`${attemptFolder(folder, 'full')}/exit`, 'utf8')
    const dropped = Number(/^dropped (\d+)$/m.exec(record)?.[1])
    const kept = (await world.guards.readOutput('full', 1, 'stdout', 0, 1 << 30))!
    const keptOfErrors = (await world.guards.readOutput('full', 1, 'stderr', 0, 1 << 30))!
    expect(dropped).toBeGreaterThan(1_000_000)
    expect(kept.data.length + keptOfErrors.data.length + dropped).toBe(4_001_000)
    expect(kept.isEnded).toBe(true)
  })

  it('makes a launch fail with one line', async () => {
    const folder = smallDisk(newGuardFolder())
    const world = await guardWorld({ folder })
    expect(() => writeFileSync(`${folder}/filler`, Buffer.alloc(2 << 20))).toThrow('ENOSPC')
    expect((await world.guards.launch(shellSpec('none', 'exit 0'))).error).toMatch(
      /^guard(:| ).*(ENOSPC|No space left on device)/,
    )
  })
})

describe('the guard program', () => {
  it('is compiled again if a source is newer, and otherwise reports the reason in one line', async () => {
    const folder = `${mkdtempSync(join(tmpdir(), 'headroom-guard-program-'))}/`
    onTestFinished(() => rmSync(folder, { recursive: true }))
    await expect(guardProgram(folder)).rejects.toThrow(
      /^the guard program .*build\/headroom-guard and its sources are missing$/,
    )
    writeFileSync(`${folder}cc-flags`, '-O1 -Werror')
    writeFileSync(`${folder}a.c`, 'int main(void) { return 5; }')
    const program = await guardProgram(folder)
    expect(() => execFileSync(program)).toThrow(expect.objectContaining({ status: 5 }))
    const built = statSync(program).mtimeMs
    expect(await guardProgram(folder)).toBe(program)
    expect(statSync(program).mtimeMs).toBe(built)
    writeFileSync(`${folder}a.c`, 'int main(void) { return nothing; }')
    await expect(guardProgram(folder)).rejects.toThrow(/^cannot build the guard program .*: .*nothing/)
    expect(readdirSync(`${folder}build`)).toEqual(['headroom-guard'])
  })

  it('refuses an invalid launch', async () => {
    const program = await guardProgram()
    const run = (args: string[], input: string) => {
      try {
        return execFileSync(program, args, { input, stdio: ['pipe', 'pipe', 'ignore'] }).toString()
      } catch (error) {
        return String((error as { stdout: Buffer }).stdout)
      }
    }
    const folder = newGuardFolder()
    expect(run([], '')).toBe('error guard: usage: headroom-guard FOLDER LEASE\n')
    expect(run([folder, '/none'], '')).toBe('error guard: its input is cut off\n')
    expect(run([folder, '/none'], 'a\x001\x00x\x00')).toBe('error guard: bad number in its input: x\n')
    expect(
      run([folder, '/none'], 'a\x001\x00-1\x00-1\x00-1\x000\x000\x000\x009\x00\x000\x000\x00/\x00999999\x00'),
    ).toBe('error guard: its input is cut off\n')
    expect(
      run(
        [folder, '/none'],
        'a\x001\x00-1\x00-1\x00-1\x000\x000\x000\x009\x00\x000\x000\x00/\x001\x00true\x000\x00',
      ),
    ).toBe('error guard: lease file /none: No such file or directory\n')
  })
})

describe('two hundred guards', () => {
  it('need at most a few MB each', { timeout: 300_000 }, async () => {
    const world = await guardWorld()
    const names = Array.from({ length: 200 }, (_, i) => `many-${i}`)
    await world.sh('first', 'exit 0')
    const alone: number[] = []
    for (let i = 0; i < 20; i++) {
      const began = performance.now()
      await world.sh(`alone-${i}`, 'exec sleep 600')
      alone.push(performance.now() - began)
      world.guards.kill(`alone-${i}`, 1)
      await world.exitOf(`alone-${i}`)
    }
    const medianMs = alone.toSorted((a, b) => a - b)[10]!
    const before = performance.now()
    for (let i = 0; i < names.length; i += 8)
      await Promise.all(
        names.slice(i, i + 8).map((name) => world.sh(name, 'exec sleep 600', { isLeased: true })),
      )
    const eachMs = (performance.now() - before) / names.length
    const of = (who: string, key: string) =>
      names.map((name) => kibOf(pidOf(attemptFolder(world.folder, name), who), key))
    const guards = of('guard', 'Rss')
    const keepers = of('keeper', 'Rss')
    const pss = [...of('guard', 'Pss'), ...of('keeper', 'Pss')].reduce((a, b) => a + b, 0)
    const ticks = () =>
      names
        .map((name) => cpuTicks(pidOf(attemptFolder(world.folder, name), 'guard')))
        .reduce((a, b) => a + b, 0)
    const used = ticks()
    await Promise.all(names.map((name) => world.guards.suspend(name, 1)))
    process.stdout.write(
      `200 guards: RSS ${Math.max(...guards)} KiB a guard and ${Math.max(...keepers)} KiB a keeper ` +
        `at most, together ${Math.round(pss / 1024)} MiB (PSS); ` +
        `launch ${medianMs.toFixed(1)} ms (median of one at a time), ${eachMs.toFixed(1)} ms each, 8 ` +
        `at a time; suspending took ${ticks() - used} ticks of CPU\n`,
    )
    expect(Math.max(...guards)).toBeLessThan(4096)
    expect(Math.max(...keepers)).toBeLessThan(4096)
    for (const name of names) world.guards.kill(name, 1)
    await until('all have ended', () => world.exits.length === names.length + 21)
    expect(world.faults).toEqual([])
  })
})

/** A file system of 1 MiB in memory, unmounted after the test. */
function smallDisk(folder: string): string {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'headroom-test', folder])
  onTestFinished(() => void execFileSync('umount', ['-l', folder]))
  return folder
}

function open(path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(path, () => resolve(socket))
    socket.once('error', reject)
    socket.on('error', () => undefined)
    socket.resume()
  })
}

/** The guard's reply up to its hang-up, or to the last line. */
async function say(path: string, text: string): Promise<string> {
  const socket = await open(path)
  let heard = ''
  const lines = text.split('\n').length - 1
  return new Promise((resolve) => {
    socket.on('data', (part: Buffer) => {
      heard += part.toString()
      if (heard.split('\n').length - 1 === lines) socket.destroy()
    })
    socket.on('close', () => resolve(heard))
    socket.write(Buffer.from(text, 'latin1'))
  })
}

function kibOf(pid: number, key: string): number {
  return Number(
    new RegExp(`^${key}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1],
  )
}

function cpuTicks(pid: number): number {
  if (startTimeOf(pid) === null) return 0
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ')
  return Number(fields[11]) + Number(fields[12])
}
