/** Data folders of a killed controller with acknowledged tasks, and possible damage to their files. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import { controllerOn, newFolder } from './controller-on.ts'

const ROUNDS = 5
const TASKS_PER_ROUND = 60
const CANCELLED_PER_ROUND = 10
const FILES = [STORE_FILE, `${STORE_FILE}-wal`, `${STORE_FILE}-shm`, `${STORE_FILE}.id`, `${STORE_FILE}.mark`]

/** Acknowledgements that a client received. */
export interface Acknowledged {
  readonly name: string
  readonly isCancelled: boolean
}

export interface KilledFolder {
  /** State after the last SIGKILL. */
  readonly folder: string
  /** States after earlier kills, oldest first. */
  readonly older: readonly string[]
  readonly tasks: ReadonlyMap<string, Acknowledged>
}

/** A controller that was killed after each round of acknowledged submissions and cancellations. */
export async function killedFolder(): Promise<KilledFolder> {
  const data = newFolder()
  const controller = controllerOn(data)
  const tasks = new Map<string, Acknowledged>()
  const copies: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    await controller.start()
    const names = Array.from({ length: TASKS_PER_ROUND }, (_, i) => `task-${round}-${i}`)
    const ids = await Promise.all(names.map((name) => submit(controller.url(), name)))
    ids.forEach((id, i) => tasks.set(id, { name: names[i] ?? '', isCancelled: i < CANCELLED_PER_ROUND }))
    await Promise.all(ids.slice(0, CANCELLED_PER_ROUND).map((id) => cancel(controller.url(), id)))
    await send('PUT', `${controller.url()}/config`, { reservation_after_seconds: 100 + round })
    await controller.member.end('SIGKILL')
    const copy = newFolder()
    copyFolder(data, copy)
    copies.push(copy)
  }
  const folder = copies.pop()
  if (folder === undefined) throw new Error('the list of rounds is empty')
  return { folder, older: copies, tasks }
}

async function submit(url: string, name: string): Promise<string> {
  const { id } = (await send('POST', `${url}/tasks`, { name, vram_mib: 1_000 })) as { readonly id: string }
  return id
}

async function cancel(url: string, id: string): Promise<void> {
  await send('DELETE', `${url}/tasks/${id}`)
}

async function send(method: string, url: string, body?: unknown): Promise<unknown> {
  const json =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
  const answer = await fetch(url, { method, ...json })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${text}`)
  return JSON.parse(text)
}

/** Only the files that a start reads: no recording, no series. */
export function copyFolder(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  for (const file of FILES) if (existsSync(join(from, file))) cpSync(join(from, file), join(to, file))
}

export type Damage = (folder: string, random: RandomStream) => string

/** Flips one bit, equally often in the store and in its log. */
export const flipBit: Damage = (folder, random) => {
  const file = random() < 0.5 ? STORE_FILE : `${STORE_FILE}-wal`
  const path = join(folder, file)
  const bytes = readFileSync(path)
  const bit = Math.floor(random() * bytes.length * 8)
  const at = bit >> 3
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit & 7))
  writeFileSync(path, bytes)
  return `bit ${bit} of ${file}`
}

/** Deletes, empties, truncates or zeroes the log from some position. */
export const loseLog: Damage = (folder, random) => {
  const path = join(folder, `${STORE_FILE}-wal`)
  const bytes = statSync(path).size
  const at = Math.floor(random() * bytes)
  const ways: readonly (readonly [string, () => void])[] = [
    ['log deleted', () => rmSync(path)],
    [
      'log and shared memory deleted',
      () => [path, join(folder, `${STORE_FILE}-shm`)].forEach((file) => rmSync(file, { force: true })),
    ],
    ['log emptied', () => truncateSync(path, 0)],
    [`log cut to ${at} bytes`, () => truncateSync(path, at)],
    [`log zeroed from ${at} on`, () => writeFileSync(path, readFileSync(path).fill(0, at))],
  ]
  const [what, lose] = ways[Math.floor(random() * ways.length)] ?? ['', () => {}]
  lose()
  return what
}

/**
 * Replaces the newest files by those of an earlier moment: the store with or without its log or that of the
 * other moment.
 */
export function setBack(older: readonly string[]): Damage {
  return (folder, random) => {
    const index = Math.floor(random() * older.length)
    const from = older[index] ?? ''
    const ways: readonly (readonly [string, readonly string[], readonly string[]])[] = [
      ['store and log', [STORE_FILE, `${STORE_FILE}-wal`], [`${STORE_FILE}-shm`]],
      ['store alone', [STORE_FILE], [`${STORE_FILE}-wal`, `${STORE_FILE}-shm`]],
      ['store with the newer log', [STORE_FILE], [`${STORE_FILE}-shm`]],
      ['log with the newer store', [`${STORE_FILE}-wal`], [`${STORE_FILE}-shm`]],
    ]
    const [what, files, removed] = ways[Math.floor(random() * ways.length)] ?? ['', [], []]
    for (const file of removed) rmSync(join(folder, file), { force: true })
    for (const file of files) cpSync(join(from, file), join(folder, file))
    return `${what} of round ${index}`
  }
}
