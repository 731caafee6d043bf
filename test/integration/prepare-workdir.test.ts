/** The copy of an uploaded folder on a GPU server, before the process of the task starts. */
import { createHash } from 'node:crypto'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'
import type { LaunchRequest, ReadBlobPart } from '../../gpu-server/core/device.ts'
import type { Accelerator } from '../../gpu-server/devices/accelerator.ts'
import { HostLaunches } from '../../gpu-server/devices/host-launches.ts'
import type { Workdirs } from '../../gpu-server/devices/host-preparations.ts'
import { HostTask } from '../../gpu-server/devices/host-task.ts'
import { TaskPlaces } from '../../gpu-server/devices/task-places.ts'
import { prepareWorkdir, type NotPrepared, type Preparation } from '../../gpu-server/files/prepare-workdir.ts'
import { WorkHelper } from '../../gpu-server/files/work-helper.ts'
import type { Guards, LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { CHUNK_BYTES, MAX_FILE_BYTES } from '../../protocol/limits.ts'

const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')
const BIG = Buffer.alloc(CHUNK_BYTES + 300_000, 'weights ')
const CHUNKS = [BIG.subarray(0, CHUNK_BYTES), BIG.subarray(CHUNK_BYTES)]
const ENTRIES = [
  { path: 'src', kind: 'folder' },
  { path: 'src/big', kind: 'file', bytes: BIG.length, executable: false, chunks: CHUNKS.map(hashOf) },
  { path: 'run', kind: 'file', bytes: 2, executable: true, chunks: [hashOf(Buffer.from('hi'))] },
  { path: 'empty', kind: 'file', bytes: 0, executable: false, chunks: [] },
  { path: 'latest', kind: 'link', target: 'src/big' },
]

describe('the copy of an uploaded folder', () => {
  let program: string
  let root: string
  let folder: string
  let contents: Map<string, Uint8Array>
  beforeAll(async () => {
    program = await guardProgram()
  })
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'headroom-prepare-'))
    folder = join(root, 'work')
    mkdirSync(folder)
    contents = new Map([...CHUNKS, Buffer.from('hi')].map((content) => [hashOf(content), content]))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const uploaded = (entries: unknown): string => {
    const content = Buffer.from(JSON.stringify({ version: 1, entries }))
    contents.set(hashOf(content), content)
    return hashOf(content)
  }

  const read: ReadBlobPart = (sha256, offset, done) => {
    const content = contents.get(sha256)
    if (content === undefined) return done({ refused: 'files_missing' })
    const part = Buffer.from(content.subarray(offset, offset + MAX_FILE_BYTES))
    done({ data: part.toString('base64'), bytes: content.length })
  }

  async function prepare(more: Partial<Preparation> = {}): Promise<NotPrepared | null> {
    const helper = await WorkHelper.open(program, folder, null)
    const signal = new AbortController().signal
    try {
      return await prepareWorkdir({
        helper,
        sha256: uploaded(ENTRIES),
        read,
        freeBytes: 1e9,
        signal,
        ...more,
      })
    } finally {
      helper.end()
    }
  }

  it('has its files, their executable bits, and its links', async () => {
    expect(await prepare()).toBeNull()
    expect(readFileSync(join(folder, 'latest')).equals(BIG)).toBe(true)
    expect(lstatSync(join(folder, 'latest')).isSymbolicLink()).toBe(true)
    expect(readdirSync(folder).sort((a, b) => (a < b ? -1 : 1))).toEqual(['empty', 'latest', 'run', 'src'])
    expect(['run', 'empty'].map((name) => lstatSync(join(folder, name)).mode & 0o777)).toEqual([0o755, 0o644])
  })

  it('waits while the controller is busy or away', async () => {
    let calls = 0
    const later: ReadBlobPart = (sha256, offset, done) => {
      calls += 1
      if (calls <= 2) done(calls === 1 ? null : { refused: 'too_many_reads' })
      else read(sha256, offset, done)
    }
    expect(await prepare({ read: later })).toBeNull()
    expect(calls).toBeGreaterThan(2)
  })

  it.each<[string, () => Partial<Preparation>, NotPrepared['refused']]>([
    [
      'a missing chunk',
      () => (contents.delete(hashOf(CHUNKS[0] as Buffer)), {}),
      { cause: 'task', code: 'files_missing' },
    ],
    [
      'other bytes under a hash',
      () => (contents.set(hashOf(Buffer.from('hi')), Buffer.from('ho')), {}),
      { cause: 'passing', code: 'files_unavailable' },
    ],
    [
      'another size than the manifest says',
      () => (contents.set(hashOf(Buffer.from('hi')), Buffer.from('high')), {}),
      { cause: 'task', code: 'files_refused' },
    ],
    [
      'a manifest that leads out of the folder',
      () => ({ sha256: uploaded([{ path: '../out', kind: 'folder' }]) }),
      { cause: 'task', code: 'files_refused' },
    ],
    ['a disk without space', () => ({ freeBytes: 100 }), { cause: 'host', code: 'disk_full' }],
    ['a stop', () => ({ signal: AbortSignal.abort() }), { cause: 'passing', code: 'stopped' }],
    [
      'a node that the controller does not expect',
      () => ({ read: (_hash, _offset, done) => done({ refused: 'foreign_files' }) }),
      { cause: 'passing', code: 'files_unavailable' },
    ],
  ])('is refused with its cause for %s', async (_what, change, refused) => {
    expect(await prepare(change())).toMatchObject({ refused })
    expect(readdirSync(root)).toEqual(['work'])
  })

  // ── the launch ──────────────────────────────────────────────────────────────

  const accelerator = { environment: () => ({}), containerDevices: () => [] } as unknown as Accelerator
  const start: AttemptStart = {
    taskId: 'a',
    attempt: 1,
    gpus: [0],
    vramMib: 100,
    gpuMode: 'shared',
    noswap: 0,
    priority: 2,
    onNodeLoss: 'wait',
    isLease: false,
  }

  function launches(workdirs: Workdirs): { readonly run: HostLaunches; readonly specs: LaunchSpec[] } {
    const specs: LaunchSpec[] = []
    const guards = {
      launch: (spec: LaunchSpec) => {
        specs.push(spec)
        return Promise.resolve({ error: null })
      },
    } as unknown as Guards
    const places = new TaskPlaces({
      identity: { kind: 'server_user' },
      workFolder: folder,
      stateFolder: root,
    })
    const mounts = [
      { name: 'data-sets', source: '/srv/data', isReadOnly: true },
      { name: 'other', source: '/srv/other', isReadOnly: true },
    ]
    const options = { guards, accelerator, places, workdirs, environment: {}, mounts, maxOutputBytes: 1 }
    return { run: new HostLaunches(options, () => Promise.resolve('/socket')), specs }
  }

  const workdir = { sha256: 'a'.repeat(64), read }
  const request: LaunchRequest = { start, command: ['true'], env: {}, onUse: () => {}, workdir }
  const task = (): HostTask =>
    new HostTask(start, 0, {} as Guards, { isStopped: false, isHeld: false }, () => {})

  it.each([
    ['on the host where it is', {}, '/srv/data'],
    ['in a container below /mnt', { image: 'team/train:1' }, '/mnt/data-sets'],
  ])('names the place of a mounted data folder to the command: %s', async (_where, more, place) => {
    const { run, specs } = launches({ prepare: () => Promise.resolve(null) } as unknown as Workdirs)
    const { workdir: _none, ...plain } = request
    await run.run(task(), ['true'], { ...plain, ...more, mounts: ['data-sets'] })
    expect(specs[0]?.env).toMatchObject({ HEADROOM_MOUNT_DATA_SETS: place })
    expect(specs[0]?.env).not.toHaveProperty('HEADROOM_MOUNT_OTHER')
    expect(specs[0]?.container?.mounts.map(({ name }) => name)).toEqual(
      'image' in more ? ['data-sets'] : undefined,
    )
  })

  it.each([
    ['on the host in its work folder', {}, undefined],
    ['in a container where its folder is mounted', { image: 'team/train:1' }, '/headroom/work'],
  ])('is where the command starts: %s', async (_where, more, cwd) => {
    const prepared: string[] = []
    const { run, specs } = launches({
      prepare: ({ folder: path }) => (prepared.push(path), Promise.resolve(null)),
    })
    expect(await run.run(task(), ['true'], { ...request, ...more })).toEqual({ error: null })
    const [spec] = specs
    expect(prepared).toEqual([join(folder, 'a.1')])
    expect(spec?.workingDirectory).toBe(join(folder, 'a.1'))
    expect([spec?.cwd, spec?.env['HEADROOM_WORK']]).toEqual([cwd, cwd ?? join(folder, 'a.1')])
  })

  it('is called off by a stop: no process starts, and nothing is left', async () => {
    let isPreparing = (): void => {}
    const preparing = new Promise<void>((resolve) => (isPreparing = resolve))
    const { run, specs } = launches({
      prepare: (_place, _workdir, signal) => {
        isPreparing()
        return new Promise((resolve) => signal.addEventListener('abort', () => resolve(null)))
      },
    })
    const launched = run.run(task(), ['true'], request)
    await preparing
    run.callOff('a')
    expect(await launched).toMatchObject({ refused: { cause: 'passing', code: 'stopped' } })
    expect(specs).toEqual([])
    expect(readdirSync(folder)).toEqual([])
  })
})
