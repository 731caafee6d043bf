/**
 * The processes of the containers of pods. A runtime gives each container a cgroup whose name contains the
 * container's id: `cri-containerd-ID.scope`, `crio-ID.scope`, or `ID`.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pidsIn } from '../guard/process-table.ts'

/** An id of a container, in hexadecimal: shorter ones could be part of another name. */
const ID = /^[0-9a-f]{32,128}$/
const MAX_DEPTH = 12

/** Finds the processes of containers. */
export type ContainerProcesses = Pick<PodCgroups, 'processesOf' | 'forget'>

export class PodCgroups {
  readonly #root: string
  /** Folders by container, as found; a container keeps its cgroup. */
  readonly #folders = new Map<string, string>()

  /** @param root of the hierarchy of cgroups, as the host sees it */
  constructor(root: string) {
    this.#root = root
  }

  /** Pids of this PID namespace; none for a container that is not there. */
  processesOf(containers: readonly string[]): readonly number[] {
    const wanted = containers.filter((id) => ID.test(id))
    let pids = this.#pidsOf(wanted)
    if (wanted.some((id) => !this.#folders.has(id))) {
      this.#find(wanted)
      pids = this.#pidsOf(wanted)
    }
    return [...new Set(pids)]
  }

  forget(containers: readonly string[]): void {
    for (const id of containers) this.#folders.delete(id)
  }

  #pidsOf(containers: readonly string[]): readonly number[] {
    return containers.flatMap((id) => {
      const folder = this.#folders.get(id)
      return folder === undefined ? [] : pidsBelow(folder, 0)
    })
  }

  #find(wanted: readonly string[]): void {
    const visit = (folder: string, depth: number): void => {
      for (const name of foldersIn(folder)) {
        const id = wanted.find((each) => name.includes(each))
        if (id !== undefined) this.#folders.set(id, join(folder, name))
        else if (depth < MAX_DEPTH) visit(join(folder, name), depth + 1)
      }
    }
    visit(this.#root, 0)
  }
}

function pidsBelow(folder: string, depth: number): readonly number[] {
  // 0: a process outside this PID namespace.
  const own = pidsIn(join(folder, 'cgroup.procs')).filter((pid) => pid > 1)
  if (depth >= MAX_DEPTH) return own
  return [...own, ...foldersIn(folder).flatMap((name) => pidsBelow(join(folder, name), depth + 1))]
}

function foldersIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
  } catch {
    return []
  }
}
