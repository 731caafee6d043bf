import { existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  attemptFolder,
  guardWorld,
  isRoot,
  membersOf,
  newGuardFolder,
  NOBODY,
  pidOf,
  shellSpec,
  until,
} from '../support/guard-world.ts'

/** Each test runs with namespaces and cgroups, if the host has them, and without. */
describe.each([
  ['isolated', true],
  ['plain', false],
])('a guarded task (%s)', (_, isIsolated) => {
  it('reports its exit code', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('code', 'exit 7')
    expect(await world.exitOf('code')).toEqual({
      taskId: 'code',
      attempt: 1,
      record: { note: 'code' },
      state: 'ended',
      exit: { code: 7, signal: null },
      didLeaseEnd: false,
    })
  })

  it('reports the signal that ended it', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('signal', 'kill -SEGV $$')
    expect((await world.exitOf('signal')).exit).toEqual({ code: null, signal: 'SIGSEGV' })
  })

  it('ends with its command, after its remaining processes are killed', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh(
      'rest',
      '(setsid sh -c "trap : TERM HUP; while :; do sleep 60; done" &) ; sleep 60 & exit 3',
    )
    expect((await world.exitOf('rest')).exit).toEqual({ code: 3, signal: null })
    expect(membersOf(attemptFolder(world.folder, 'rest'))).toEqual([])
  })

  it('has the given environment and folder, three open files, and default signals', async () => {
    const world = await guardWorld({ isIsolated })
    const workingDirectory = newGuardFolder()
    const env = { PATH: '/usr/bin:/bin', GREETING: 'a b c', EMPTY: '' }
    const script =
      'tr "\\0" "\\n" < /proc/self/environ; readlink /proc/self/cwd; ls /proc/self/fd | wc -l; grep ' +
      '-E "Sig(Ign|Blk)" /proc/self/status'
    await world.sh('world', script, { env, workingDirectory })
    await world.exitOf('world')
    const { mark } = JSON.parse(
      readFileSync(`${attemptFolder(world.folder, 'world')}/task.json`, 'utf8'),
    ) as { mark: string }
    const environment = `PATH=/usr/bin:/bin\nGREETING=a b c\nEMPTY=\nHEADROOM_ATTEMPT=${mark}\n`
    const sorted = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .toSorted((a, b) => (a < b ? -1 : 1))
    const output = await world.output('world')
    const rest = output.slice(output.indexOf(`\n${workingDirectory}\n`) + 1)
    expect(sorted(output.slice(0, -rest.length))).toEqual(sorted(environment))
    expect(rest).toBe(`${workingDirectory}\n4\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n`)
  })

  it('gains no privileges from a setuid program', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('rights', 'grep NoNewPrivs /proc/self/status')
    await world.exitOf('rights')
    expect(await world.output('rights')).toBe('NoNewPrivs:\t1\n')
  })

  it('is refused in one line when it cannot run, and can then be launched again', async () => {
    const world = await guardWorld({ isIsolated })
    const refused = (more: object) => world.guards.launch(shellSpec('no', 'exit 0', more))
    expect(await refused({ command: ['no-such-program'] })).toEqual({
      error: 'command no-such-program: No such file or directory',
      refused: { cause: 'task', code: 'command_not_found' },
    })
    expect(await refused({ command: ['/etc/passwd'] })).toEqual({
      error: 'command /etc/passwd: Permission denied',
      refused: { cause: 'task', code: 'command_not_executable' },
    })
    expect(await refused({ workingDirectory: '/no/such' })).toEqual({
      error: 'working directory /no/such: No such file or directory',
      refused: { cause: 'host', code: 'work_folder' },
    })
    expect(await refused({ command: [] })).toEqual({
      error: 'command: must not be empty',
      refused: { cause: 'task', code: 'bad_command' },
    })
    expect(await refused({ command: ['a\0b'] })).toEqual({
      error: 'command: must not contain a NUL character',
      refused: { cause: 'task', code: 'bad_command' },
    })
    expect(await refused({ env: { 'A=B': '' } })).toEqual({
      error: 'environment variable "A=B": must be a name and a value without NUL',
      refused: { cause: 'task', code: 'bad_command' },
    })
    expect(readdirSync(`${world.folder}/guards`)).toEqual([])
    expect(await refused({})).toEqual({ error: null })
    expect(await refused({})).toEqual({
      error: 'attempt no.1 has been launched before',
      refused: { cause: 'passing', code: 'launched_before' },
    })
    expect((await world.exitOf('no')).exit?.code).toBe(0)
  })

  it.runIf(isRoot)('runs as the given user, only with its group', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('user', 'id -u; id -g; id -G; echo own > /proc/$$/comm && kill -9 $PPID || echo refused', {
      user: { uid: NOBODY, gid: NOBODY },
    })
    await world.exitOf('user')
    expect(await world.output('user')).toBe(`${NOBODY}\n${NOBODY}\n${NOBODY}\nrefused\n`)
  })

  it('has its start recorded before it runs', async () => {
    const world = await guardWorld({ isIsolated })
    const attempt = attemptFolder(world.folder, 'recorded')
    await world.sh('recorded', `cat ${attempt}/started`)
    await world.exitOf('recorded')
    const started = await world.output('recorded')
    expect(started).toMatch(
      new RegExp(
        /^task recorded\nattempt 1\nguard \d+ \d+\nkeeper \d+ \d+\ncommand \d+ \d+\ncgroup /.source +
          /.*\nisolated [01]\nboot [-0-9a-f]+\n$/.source,
      ),
    )
    expect(started).toContain(`command ${pidOf(attempt, 'command')} `)
  })

  it('keeps its latest output, readable by offset, separately for the two streams', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh(
      'much',
      'i=0; while [ $i -lt 4000 ]; do printf "%09d\\n" $i; i=$((i+1)); done; echo oops >&2',
      {
        maxOutputBytes: 16_384,
      },
    )
    await world.exitOf('much')
    const read = (offset: number, maxBytes: number) =>
      world.guards.readOutput('much', 1, 'stdout', offset, maxBytes)
    const first = await read(0, 100)
    expect(first!.offset).toBeGreaterThanOrEqual(40_000 - 16_384)
    expect(first!.offset).toBeLessThanOrEqual(40_000 - 16_384 * 0.75)
    expect(first!.data.toString()).toBe(linesFrom(first!.offset).slice(0, 100))
    expect(first!.isEnded).toBe(false)
    const whole = await read(30_000, 1 << 20)
    expect(whole).toEqual({ offset: 30_000, data: Buffer.from(linesFrom(30_000)), isEnded: true })
    expect(await read(99_999, 10)).toEqual({ offset: 40_000, data: Buffer.alloc(0), isEnded: true })
    expect(await world.output('much', 'stderr')).toBe('oops\n')
    expect(await world.guards.readOutput('absent', 1, 'stdout', 0, 10)).toBeNull()
  })

  it('has output that can be followed while it runs', async () => {
    const world = await guardWorld({ isIsolated })
    const gate = `${newGuardFolder()}/gate`
    await world.sh('follow', `echo one; while [ ! -e ${gate} ]; do sleep 0.05; done; echo two`)
    let text = ''
    const take = async () => {
      const chunk = await world.guards.readOutput('follow', 1, 'stdout', text.length, 100)
      text += chunk!.data.toString()
      return chunk!.isEnded
    }
    while (text !== 'one\n') expect(await take()).toBe(false)
    writeFileSync(gate, '')
    while (!(await take())) expect(text.startsWith('one\n')).toBe(true)
    expect(text).toBe('one\ntwo\n')
  })
})

describe('the guards of a server', () => {
  it('keep the output of forgotten tasks within the limits of count and bytes', async () => {
    const world = await guardWorld({ endedOutputs: { maxTasks: 2, maxBytes: 1 << 20 } })
    const work = newGuardFolder()
    for (const name of ['a', 'b', 'c']) {
      const place = { user: null, folder: `${work}/${name}` }
      mkdirSync(place.folder)
      await world.sh(name, `echo ${name}; touch file`, { place, workingDirectory: place.folder })
      await world.exitOf(name)
      world.guards.forget(name, 1)
    }
    await until('the oldest is gone', () => !existsSync(attemptFolder(world.folder, 'a')))
    // The content of its folder is removed first.
    expect(readdirSync(work)).toEqual(['b', 'c'])
    expect(await world.output('b')).toBe('b\n')
    expect(await world.output('c')).toBe('c\n')
    const next = await guardWorld({ folder: world.folder, endedOutputs: { maxTasks: 1, maxBytes: 1 << 20 } })
    expect(await next.guards.adopt()).toEqual([])
    expect(readdirSync(`${world.folder}/guards`)).toEqual(['c.1'])
  })

  it('do not forget a running task', async () => {
    const world = await guardWorld()
    await world.sh('runs', 'exec sleep 60')
    world.guards.forget('runs', 1)
    expect(world.guards.processIds('runs', 1)).toHaveLength(1)
    world.guards.kill('runs', 1)
    expect((await world.exitOf('runs')).exit).toEqual({ code: null, signal: 'SIGKILL' })
  })

  it('work in a folder whose path is longer than a socket name', async () => {
    const folder = `${newGuardFolder()}/${'x'.repeat(60)}/${'y'.repeat(60)}`
    mkdirSync(folder, { recursive: true })
    const world = await guardWorld({ folder })
    await world.sh('deep', 'exec sleep 60')
    await world.guards.suspend('deep', 1)
    world.guards.kill('deep', 1)
    expect((await world.exitOf('deep')).exit?.signal).toBe('SIGKILL')
  })

  it('accept any task id as a name, and none as a path', async () => {
    const world = await guardWorld()
    await world.sh('../../etc/ä b', 'exit 0')
    expect((await world.exitOf('../../etc/ä b')).exit?.code).toBe(0)
    expect(readdirSync(`${world.folder}/guards`)).toEqual(['..%2F..%2Fetc%2F%C3%A4%20b.1'])
    expect((await world.guards.launch(shellSpec('x'.repeat(300), ''))).error).toMatch(
      /too long for a folder$/,
    )
  })

  it('report an unusable folder in one line', async () => {
    const folder = newGuardFolder()
    writeFileSync(`${folder}/file`, '')
    symlinkSync(`${folder}/file`, `${folder}/guards`)
    await expect(guardWorld({ folder })).rejects.toThrow(/EEXIST|ENOTDIR/)
  })
})

function linesFrom(offset: number): string {
  return Array.from({ length: 4000 }, (_, i) => `${String(i).padStart(9, '0')}\n`)
    .join('')
    .slice(offset)
}
