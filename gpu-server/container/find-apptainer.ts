/** Finds the command of apptainer. */
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import type { Apptainer } from './apptainer-command.ts'
import { baseEnvironment, runApptainer } from './apptainer-images.ts'

const ANSWER_MS = 15_000
/** The first one with limits by options. */
const OLDEST = [1, 1] as const
const PROFILE = 'seccomp-profiles/default.json'

/** Rejects with why it cannot be used. */
export async function findApptainer(env: Readonly<Record<string, string | undefined>>): Promise<Apptainer> {
  const program = programIn(env['PATH'] ?? '')
  if (program === null) throw new Error('apptainer: not found in PATH')
  const said = await ask(program, ['--version'])
  const [, version = '', major, minor] = /^apptainer version ((\d+)\.(\d+)[\w.+~-]*)/.exec(said) ?? []
  if (version === '') throw new Error(`${program}: does not report its version`)
  if (Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1]))
    throw new Error(`${program}: version ${version} is too old: install ${OLDEST.join('.')} or later`)
  const folder = await ask(program, ['buildcfg']).then(
    (text) => /^APPTAINER_CONFDIR=(\/.*)$/m.exec(text)?.[1] ?? null,
    () => null,
  )
  const profile = folder === null ? null : join(folder, PROFILE)
  return {
    kind: 'apptainer',
    version: version.slice(0, 40),
    program,
    isRoot: process.getuid?.() === 0,
    seccompProfile: profile !== null && existsSync(profile) ? profile : null,
  }
}

/** Searches absolute folders only: the meaning of a relative folder depends on the working directory. */
function programIn(path: string): string | null {
  for (const folder of path.split(delimiter).filter(isAbsolute)) {
    const program = join(folder, 'apptainer')
    try {
      accessSync(program, constants.X_OK)
      return program
    } catch {
      // The file does not exist.
    }
  }
  return null
}

function ask(program: string, arguments_: readonly string[]): Promise<string> {
  return runApptainer(program, arguments_, baseEnvironment('/'), AbortSignal.timeout(ANSWER_MS))
}
