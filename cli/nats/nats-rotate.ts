/** `headroom nats rotate`: a new key for a party of the broker, in place of one that may have leaked. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nkeys } from '@nats-io/transport-node'
import { UsageError } from '../../services/exit-codes.ts'
import { makeFolder, writeOutput } from '../../services/output-file.ts'
import { CONFIG_HEADER } from './nats-config-text.ts'

export interface NatsRotateOptions {
  readonly all?: boolean
  readonly out: string
}

/** Name and public key of each identity, as `headroom nats config` writes them. */
const USER = /^ {4}# (\S+)\n {4}\{\n {4} {2}nkey: (U[A-Z2-7]{55})$/gm

/** Throws UsageError before anything is written. */
export function natsRotate(parties: readonly string[], { all = false, out }: NatsRotateOptions): void {
  if (all === parties.length > 0) throw new UsageError('no party is named: name one or more, or use --all')
  const text = configIn(out)
  const known = new Map([...text.matchAll(USER)].map(([, name = '', key = '']) => [name, key]))
  const missing = parties.find((party) => !known.has(party))
  if (missing !== undefined)
    throw new UsageError(`${out} has no party ${missing}; it has ${[...known.keys()].join(', ')}`)
  const option = `--out ${out}`
  const keys = join(dirname(out), 'keys')
  makeFolder(option, keys, 0o700)
  const renewed = all ? [...known.keys()] : [...new Set(parties)]
  let changed = text
  const lines = renewed.map((name) => {
    const key = nkeys.createUser()
    const file = join(keys, `${name}.nk`)
    // Its inbox is named after the key too.
    changed = changed.replaceAll(known.get(name) ?? '', key.getPublicKey())
    writeOutput(option, file, `${new TextDecoder().decode(key.getSeed())}\n`, 0o600)
    return `  ${name.padEnd(24)} ${file}\n`
  })
  writeOutput(option, out, changed)
  process.stdout.write(
    `New keys:\n${lines.join('')}1. Replace the old key of each party on its host. 2. nats-server ` +
      '--signal reload: the old keys are ' +
      'refused from now on. 3. Restart each party; tasks keep running.\n',
  )
}

function configIn(out: string): string {
  let text: string
  try {
    text = readFileSync(out, 'utf8')
  } catch (error) {
    throw new UsageError(`--out ${out}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
  if (text.startsWith(CONFIG_HEADER)) return text
  throw new UsageError(
    `${out} was not made by \`headroom nats config\`: change its keys where it was written`,
  )
}
