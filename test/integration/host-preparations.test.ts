/** What a host has ready before a launch: the folder of the attempt, and the image as the engine has it. */
import { createHash } from 'node:crypto'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { PrepareProgress, PrepareRequest, ReadBlobPart } from '../../gpu-server/core/device.ts'
import { HostPreparations } from '../../gpu-server/devices/host-preparations.ts'
import { TaskPlaces } from '../../gpu-server/devices/task-places.ts'
import { workdirsOf } from '../../gpu-server/files/workdirs.ts'
import type { Containers, PreparedImage, PrepareOptions } from '../../gpu-server/guard/containers.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'

const hashOf = (content: string): string => createHash('sha256').update(content).digest('hex')
const FILE = 'print(1)\n'
const MANIFEST = JSON.stringify({
  version: 1,
  entries: [
    { path: 'train.py', kind: 'file', bytes: FILE.length, executable: false, chunks: [hashOf(FILE)] },
  ],
})
const CONTENTS = new Map([FILE, MANIFEST].map((content) => [hashOf(content), content]))
const read: ReadBlobPart = (sha256, offset, done) => {
  const content = Buffer.from(CONTENTS.get(sha256) ?? '')
  done({ data: content.subarray(offset).toString('base64'), bytes: content.length })
}
const isRoot = process.getuid?.() === 0
const WORKDIR = { sha256: hashOf(MANIFEST), read }

describe('a preparation on a host', () => {
  let program: string
  let root: string
  let work: string
  beforeAll(async () => {
    program = await guardProgram()
  })
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'headroom-preparations-'))
    work = join(root, 'work')
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  /** As after a start of the server. */
  async function host(containers: Containers | null = null) {
    const ids = { from: 300_000, to: 300_009 }
    const places = new TaskPlaces({
      identity: isRoot ? { kind: 'uid_per_attempt', ids } : { kind: 'server_user' },
      workFolder: work,
      stateFolder: root,
    })
    await places.openPrepared()
    return {
      places,
      preparations: new HostPreparations({ places, containers, workdirs: workdirsOf(program, work) }),
    }
  }
  const request = (more: Partial<PrepareRequest> = {}): PrepareRequest => ({
    taskId: 'a',
    attempt: 1,
    workdir: WORKDIR,
    ...more,
  })
  const prepared = () => readdirSync(join(work, '.preparing'))

  it('makes the folder that the launch of the same attempt gets, with its user', async () => {
    const { places, preparations } = await host()
    const seen: PrepareProgress[] = []
    expect(await preparations.prepare(request(), (progress) => seen.push(progress))).toBeNull()
    expect(seen).toEqual([{ bytesDone: FILE.length, bytesTotal: FILE.length }])
    expect(prepared()).toEqual(['a.1'])
    expect(places.find('a', 1)).toBeNull()
    expect(await preparations.take('a', 1)).toBe(true)
    const place = await places.open('a', 1)
    expect(place.folder).toBe(join(work, 'a.1'))
    expect(readFileSync(join(place.folder, 'train.py'), 'utf8')).toBe(FILE)
    expect(lstatSync(place.folder).mode & 0o777).toBe(0o700)
    if (isRoot) expect(lstatSync(join(place.folder, 'train.py')).uid).toBe(place.user?.uid)
    expect(prepared()).toEqual([])
    expect(await preparations.take('a', 1)).toBe(false)
  })

  it('that is dropped leaves no folder, and its user id is free again', async () => {
    const { places, preparations } = await host()
    for (let attempt = 1; attempt <= 20; attempt++) {
      expect(await preparations.prepare(request({ attempt }), () => {})).toBeNull()
      preparations.drop('a', attempt)
      await expect.poll(prepared).toEqual([])
    }
    expect(places.find('a', 1)).toBeNull()
  })

  it('that an earlier process of the server made is removed at its start', async () => {
    const { preparations } = await host()
    await preparations.prepare(request(), () => {})
    expect(prepared()).toEqual(['a.1'])
    await host()
    expect(prepared()).toEqual([])
  })

  it('follows no link that replaced its folder', async () => {
    const elsewhere = join(root, 'elsewhere')
    mkdirSync(elsewhere)
    const { preparations } = await host()
    renameSync(join(work, '.preparing'), join(work, 'moved'))
    symlinkSync(elsewhere, join(work, '.preparing'))
    expect(await preparations.prepare(request(), () => {})).toBeNull()
    expect(readdirSync(elsewhere)).toEqual([])
    expect(readdirSync(join(work, 'moved'))).toEqual(['a.1'])
  })

  it('gets the image first, and reports the bytes of both', async () => {
    const image: PreparedImage = { error: null, imageId: 'i', workingDirectory: '/', digest: null }
    const containers = {
      prepare: (_image: string, { onProgress }: PrepareOptions) => {
        onProgress?.(100, 100)
        return Promise.resolve(image)
      },
    } as unknown as Containers
    const { preparations } = await host(containers)
    const seen: PrepareProgress[] = []
    await preparations.prepare(request({ image: 'team/train:1' }), (progress) => seen.push(progress))
    expect(seen.at(-1)).toEqual({ bytesDone: 100 + FILE.length, bytesTotal: 100 + FILE.length })
  })

  it('without the image fails with the words of the engine, and leaves nothing', async () => {
    const refused = { cause: 'task', code: 'image_not_available' } as const
    const containers = {
      prepare: () => Promise.resolve({ error: 'manifest unknown', refused }),
    } as unknown as Containers
    const { preparations } = await host(containers)
    const answer = await preparations.prepare(request({ image: 'team/train:1' }), () => {})
    expect(answer).toEqual({ error: 'manifest unknown', refused })
    expect(await preparations.take('a', 1)).toBe(false)
    expect(prepared()).toEqual([])
  })
})
