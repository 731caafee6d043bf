import { spawn, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ENTER, NAMESPACES } from '../support/debian-root.ts'

const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
  LANG: 'C.UTF-8',
  DEBIAN_FRONTEND: 'noninteractive',
  CHROOT: '--userspec=root',
}

export interface Answer {
  /** Null: a command failed and the shell ended, or it took too long. */
  readonly status: number | null
  /** Stdout and stderr together. */
  readonly output: string
}

/** One root shell in a Debian folder that reads its commands as a person types them. */
export class DebianShell {
  readonly #root: string
  readonly #bash: ChildProcess
  #output = ''
  #blocks = 0

  constructor(root: string) {
    this.#root = root
    const shell = ['bash', '--noprofile', '--norc', '-o', 'pipefail']
    this.#bash = spawn('unshare', [...NAMESPACES, 'sh', '-c', ENTER, root, ...shell], {
      env: ENVIRONMENT,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    for (const stream of [this.#bash.stdout, this.#bash.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
  }

  /**
   * Runs commands; the first that fails ends the shell, so that a wrong command in the middle is noticed.
   * @param separate in a shell of its own: a failure does not end this one
   */
  async type(commands: string, separate: boolean, withinMs: number): Promise<Answer> {
    const mark = `end of block ${++this.#blocks}:`
    const file = `/tmp/block-${this.#blocks}.sh`
    writeFileSync(join(this.#root, file), commands)
    this.#output = ''
    const line = separate ? `bash -eo pipefail ${file} 2>&1; s=$?` : `set -e; . ${file} 2>&1; s=$?; set +e`
    this.#bash.stdin?.write(`${line}; echo "${mark} $s"\n`)
    const deadline = performance.now() + withinMs
    const marked = new RegExp(`^([^]*)${mark} (\\d+)\\n`)
    while (performance.now() < deadline) {
      const [, output, status] = marked.exec(this.#output) ?? []
      if (output !== undefined) return { status: Number(status), output }
      if (this.#bash.exitCode !== null) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    return { status: null, output: this.#output }
  }

  /** Ends the shell and all processes that it started. */
  close(): void {
    this.#bash.kill('SIGKILL')
  }
}
