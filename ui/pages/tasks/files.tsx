/** The work folder of the latest attempt of a task: its files with their sizes, to be saved. */
import { useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { FilePieceBody, WorkFileBody, WorkFilesBody } from '../../../controller/api/tasks/file-schema.ts'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { pathSegment, type ApiClient } from '../../api/client.ts'
import { save } from '../../charts/save.ts'
import { QueryState } from '../../components/query-state.tsx'
import { EmptyState } from '../../design/empty-state.tsx'
import { Problem } from '../../design/problem.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { bytesOf, byteWords } from '../../format/bytes.ts'
import { clockTime } from '../../format/clock.ts'
import { UNKNOWN, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { errorText } from '../../api/error-text.ts'

export function Files(props: { readonly task: TaskBody }): JSX.Element {
  const { api } = useCluster()
  const [search, setSearch] = useSearchParams<{ path?: string }>()
  const folder = (): string => search.path ?? ''
  const at = (): string => `/tasks/${pathSegment(props.task.id)}/files`
  const [problem, setProblem] = createSignal<string | null>(null)
  const [progress, setProgress] = createSignal<string | null>(null)
  const files = useQuery(() => ({
    queryKey: ['tasks', 'files', props.task.id, folder()],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<WorkFilesBody>(at(), { path: folder() }, signal),
    staleTime: 5_000,
  }))
  const open = (path: string): void => setSearch({ path: path === '' ? null : path })
  const download = async (file: WorkFileBody): Promise<void> => {
    setProblem(null)
    try {
      const parts = await allOf(api, at(), file, (done) =>
        setProgress(`Reading ${file.path}: ${byteWords(done)} of ${byteWords(file.bytes)}`),
      )
      save(nameOf(file.path), new Blob(parts, { type: 'application/octet-stream' }))
    } catch (error) {
      setProblem(errorText(error))
    } finally {
      setProgress(null)
    }
  }
  const columns: readonly Column<WorkFileBody>[] = [
    {
      name: 'Name',
      class: 'text',
      cell: (row) => (
        <Show when={row().kind === 'folder'} fallback={nameOf(row().path)}>
          <button class="plain" onClick={() => open(row().path)}>
            {nameOf(row().path)}/
          </button>
        </Show>
      ),
    },
    {
      name: 'Size',
      isNumber: true,
      cell: (row) => (
        <span title={`${whole(row().bytes)} bytes`}>
          {row().kind === 'file' ? byteWords(row().bytes) : UNKNOWN}
        </span>
      ),
    },
    { name: 'Changed', cell: (row) => <span class="nowrap">{clockTime(row().modified_at)}</span> },
    {
      name: 'Actions',
      nameAs: 'hidden',
      cell: (row) => (
        <Show when={row().kind === 'file'} fallback={row().kind === 'folder' ? '' : row().kind}>
          <button onClick={() => void download(row())} aria-label={`Download ${nameOf(row().path)}`}>
            Download
          </button>
        </Show>
      ),
    },
  ]
  return (
    <section class="card stack" aria-label="Files">
      <div class="row">
        <Crumbs folder={folder()} onOpen={open} />
        <span class="quiet" role="status">
          {progress() ?? ''}
        </span>
      </div>
      <Problem text={problem()} />
      <QueryState
        query={files}
        isEmpty={({ items }) => items.length === 0}
        whenEmpty={<EmptyState icon="folder-open" title="This folder is empty." />}
      >
        {(body) => (
          <>
            <Table name="Task files" columns={columns} rows={body().items} idOf={({ path }) => path} />
            <Show when={!body().is_complete}>
              <p class="quiet">
                Only the first {whole(body().items.length)} entries are shown. To get all of them, run{' '}
                <code>headroom artifacts {props.task.id}</code>
              </p>
            </Show>
          </>
        )}
      </QueryState>
    </section>
  )
}

function Crumbs(props: { readonly folder: string; readonly onOpen: (path: string) => void }): JSX.Element {
  const parts = (): readonly string[] => props.folder.split('/').filter((part) => part !== '')
  return (
    <nav aria-label="Folder" class="row">
      <button class="plain" onClick={() => props.onOpen('')}>
        Work folder
      </button>
      <For each={parts()}>
        {(part, at) => (
          <>
            <span aria-hidden="true">/</span>
            <button
              class="plain"
              onClick={() =>
                props.onOpen(
                  parts()
                    .slice(0, at() + 1)
                    .join('/'),
                )
              }
            >
              <span class="text">{part}</span>
            </button>
          </>
        )}
      </For>
    </nav>
  )
}

/** A size at which the page still has memory. */
const MAX_DOWNLOAD_BYTES = 512 * 1_048_576

async function allOf(
  api: ApiClient,
  at: string,
  { path, bytes: size }: WorkFileBody,
  onProgress: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>[]> {
  if (size > MAX_DOWNLOAD_BYTES) throw new Error(`${path} is too large for the browser. Use headroom cp.`)
  const parts: Uint8Array<ArrayBuffer>[] = []
  let inode: string | null = null
  for (let offset = 0; ;) {
    const piece: FilePieceBody = await api.get<FilePieceBody>(`${at}/content`, { path, offset })
    if (inode !== null && piece.inode !== inode)
      throw new Error(`${path} was replaced while it was being read. Download it again.`)
    inode = piece.inode
    if (piece.data === '') return parts
    parts.push(bytesOf(piece.data))
    offset = piece.next_offset
    onProgress(offset)
    if (offset > MAX_DOWNLOAD_BYTES)
      throw new Error(`${path} grew too large for the browser. Use headroom cp.`)
  }
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}
