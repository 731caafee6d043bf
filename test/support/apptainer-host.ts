/** A folder of programs with a stand-in for apptainer, its images, and what it was told. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  ApptainerContainers,
  ApptainerContainersOptions,
} from '../../gpu-server/container/apptainer-containers.ts'
import { afterEachFile } from './endings.ts'
import { stubContainers } from './stub-containers.ts'

export interface StubAnswers {
  version?: string
  /** `here`, or the words with which a pull fails. */
  registry?: Readonly<Record<string, string>>
  pullMs?: number
  /** The words with which `exec` fails, or `hang`. */
  exec?: string
  /** Runs in the container before its init, as scripts of an image do. */
  imageScript?: string
}

export interface StubCall {
  readonly arguments: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

const STUB = join(import.meta.dirname, 'apptainer-stub.cjs')
const folders = new Set<string>()
afterEachFile(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  folders.clear()
})

export class ApptainerHost {
  readonly folder = mkdtempSync(join(tmpdir(), 'headroom-apptainer-'))
  readonly program = join(this.folder, 'apptainer')

  constructor() {
    folders.add(this.folder)
    writeFileSync(this.program, `#!/bin/sh\nexec ${process.execPath} ${STUB} ${this.folder} "$@"\n`)
    chmodSync(this.program, 0o755)
    this.answer({})
  }

  answer(answers: StubAnswers): void {
    const all = { version: 'apptainer version 1.4.0', registry: { [SOURCE]: 'here' }, ...answers }
    writeFileSync(join(this.folder, 'answers.json'), JSON.stringify(all))
  }

  /** With this subcommand, in their order. */
  calls(name: 'pull' | 'exec'): readonly StubCall[] {
    if (!existsSync(join(this.folder, 'calls'))) return []
    // What follows the last line break is being written.
    const lines = readFileSync(join(this.folder, 'calls'), 'utf8').split('\n').slice(0, -1)
    return lines.map((line) => JSON.parse(line) as StubCall).filter((call) => call.arguments.includes(name))
  }

  /** The default profile, as apptainer installs it. */
  installProfile(): string {
    const folder = join(this.folder, 'etc/seccomp-profiles')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'default.json'), '{}')
    return join(folder, 'default.json')
  }

  containers(
    stateFolder: string,
    more: Partial<ApptainerContainersOptions> = {},
  ): Promise<ApptainerContainers> {
    return stubContainers(this.folder, stateFolder, more)
  }
}

/** What the reference `team/train:1` is for apptainer. */
export const SOURCE = 'docker://docker.io/team/train:1'
