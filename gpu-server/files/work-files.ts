/** Reads the work folders of attempts, living or ended, through a helper for each. */
import type { WorkFile } from '../../protocol/file-messages.ts'
import type { FileListPart, FilePart, WorkFilesPort } from '../core/work-files-port.ts'
import { folderNameOf } from '../guard/guard-folder.ts'
import type { TaskUser } from '../guard/guards.ts'
import { HelperFault, WorkHelper, type HelperReply, type HelperRequest } from './work-helper.ts'

export interface WorkFilesOptions {
  readonly program: string
  /** Returns the folder of an attempt and its user; null: it has none any more. */
  readonly find: (taskId: string, attempt: number) => Found | null
}

interface Found {
  readonly folder: string
  readonly user: Pick<TaskUser, 'uid' | 'gid'> | null
}

/** Attempts whose files are read at the same time. */
const MAX_HELPERS = 16
/** A helper without requests ends after this time. */
const IDLE_MS = 5_000
const ITEM_BYTES = 20
/** Bytes of paths in one answer, in JSON: its limit is that of a message. */
const MAX_LIST_LENGTH = 150_000

interface Session {
  readonly helper: Promise<WorkHelper>
  timer: NodeJS.Timeout | null
  users: number
}

type Refused = { readonly refused: string }

export class WorkFiles implements WorkFilesPort {
  readonly #options: WorkFilesOptions
  readonly #sessions = new Map<string, Session>()

  constructor(options: WorkFilesOptions) {
    this.#options = options
  }

  list(
    taskId: string,
    attempt: number,
    { path, after, maxItems }: { readonly path: string; readonly after: string; readonly maxItems: number },
    done: (answer: FileListPart | Refused) => void,
  ): void {
    const payload = Buffer.from(`${path}\0${after}`)
    void this.#ask(taskId, attempt, { op: 'list', a: maxItems, payload }).then((reply) =>
      done('refused' in reply ? reply : itemsIn(reply)),
    )
  }

  read(
    taskId: string,
    attempt: number,
    { path, offset, maxBytes }: { readonly path: string; readonly offset: number; readonly maxBytes: number },
    done: (answer: FilePart | Refused) => void,
  ): void {
    const request = { op: 'read', a: offset, b: maxBytes, payload: Buffer.from(path) } as const
    void this.#ask(taskId, attempt, request).then((reply) =>
      done(
        'refused' in reply
          ? reply
          : {
              base64: reply.content.toString('base64'),
              bytes: reply.a,
              modifiedMs: Math.max(0, reply.b),
              inode: String(reply.c),
            },
      ),
    )
  }

  close(): void {
    for (const key of [...this.#sessions.keys()]) this.#end(key)
  }

  async #ask(taskId: string, attempt: number, request: HelperRequest): Promise<HelperReply | Refused> {
    const key = folderNameOf(taskId, attempt)
    const session = this.#sessions.get(key) ?? this.#open(key, taskId, attempt)
    if ('refused' in session) return session
    session.users += 1
    if (session.timer !== null) clearTimeout(session.timer)
    try {
      const reply = await (await session.helper).request(request)
      return reply.error === null ? reply : { refused: REFUSALS[reply.error] ?? 'failed' }
    } catch (error) {
      this.#end(key)
      if (error instanceof HelperFault) return { refused: 'failed' }
      return { refused: 'unknown_attempt' }
    } finally {
      session.users -= 1
      if (session.users === 0) {
        session.timer = setTimeout(() => this.#end(key, session), IDLE_MS)
        session.timer.unref()
      }
    }
  }

  #open(key: string, taskId: string, attempt: number): Session | Refused {
    const found = this.#options.find(taskId, attempt)
    if (found === null) return { refused: 'unknown_attempt' }
    if (this.#sessions.size >= MAX_HELPERS) return { refused: 'too_many_reads' }
    const helper = this.#opened(taskId, attempt, found)
    const session: Session = { helper, timer: null, users: 0 }
    this.#sessions.set(key, session)
    return session
  }

  /** A folder that moves at this moment, because its attempt has ended, is found again. */
  async #opened(taskId: string, attempt: number, found: Found): Promise<WorkHelper> {
    const { find, program } = this.#options
    try {
      return await WorkHelper.open(program, found.folder, found.user)
    } catch (error) {
      const again = find(taskId, attempt)
      if (again === null || again.folder === found.folder) throw error
      return WorkHelper.open(program, again.folder, again.user)
    }
  }

  #end(key: string, only: Session | null = null): void {
    const session = this.#sessions.get(key)
    if (session === undefined || (only !== null && (session !== only || only.users > 0))) return
    this.#sessions.delete(key)
    if (session.timer !== null) clearTimeout(session.timer)
    void session.helper.then(
      (helper) => helper.end(),
      () => undefined,
    )
  }
}

/** Codes of the protocol for errors of the file system. */
const REFUSALS: Readonly<Record<string, string>> = {
  ENOENT: 'not_found',
  ENOTDIR: 'not_found',
  EISDIR: 'is_folder',
  EINVAL: 'not_a_file',
  EXDEV: 'outside',
  ELOOP: 'outside',
  EACCES: 'not_readable',
  EPERM: 'not_readable',
  ENAMETOOLONG: 'not_found',
}

const KINDS: Readonly<Record<string, WorkFile['kind']>> = { f: 'file', d: 'folder', l: 'link' }

/** A name that is not UTF-8 is left out: no request could contain it. */
function itemsIn({ content, a }: HelperReply): FileListPart {
  const items: WorkFile[] = []
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let length = 0
  for (let at = 0; at + ITEM_BYTES <= content.length;) {
    const end = at + ITEM_BYTES + content.readUInt16LE(at + 2)
    const path = decoded(decoder, content.subarray(at + ITEM_BYTES, end))
    length += path === null ? 0 : Buffer.byteLength(JSON.stringify(path)) + ITEM_BYTES * 4
    if (length > MAX_LIST_LENGTH) return { items, isComplete: false }
    if (path !== null)
      items.push({
        path,
        kind: KINDS[String.fromCharCode(content.readUInt16LE(at))] ?? 'other',
        bytes: Number(content.readBigUInt64LE(at + 4)),
        modified_ms: Math.max(0, Number(content.readBigInt64LE(at + 12))),
      })
    at = end
  }
  return { items, isComplete: a === 1 || items.length === 0 }
}

function decoded(decoder: InstanceType<typeof TextDecoder>, bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes)
  } catch {
    return null
  }
}
