/** `headroom doctor`: one line for each check, with what to do when it fails. */
import { EXIT_FAILED, EXIT_OK } from '../../services/exit-codes.ts'
import { brokerChecks } from './broker.ts'
import { keyChecks, taskUserChecks } from './confinement.ts'
import { controllerChecks } from './controller.ts'
import type { Check } from './check.ts'
import { compilerCheck, dataDirCheck, nodeVersionCheck, nvidiaCheck } from './host.ts'
import { printList, type Column } from '../output/table.ts'
import type { CommandOptions } from '../command/session.ts'

export async function doctor({ output, ...server }: CommandOptions): Promise<number> {
  const found = await Promise.all([
    nodeVersionCheck(process.versions.node),
    controllerChecks(server),
    brokerChecks(process.env),
    compilerCheck(),
    nvidiaCheck(),
    dataDirCheck(process.env),
  ])
  const checks = [
    ...found.flat(),
    ...keyChecks(process.env),
    ...(process.platform === 'linux' ? taskUserChecks() : []),
  ]
  await printList(checks, COLUMNS, output)
  return checks.some(({ verdict }) => verdict === 'fail') ? EXIT_FAILED : EXIT_OK
}

const COLUMNS: readonly Column<Check>[] = [
  {
    title: 'VERDICT',
    of: ({ verdict }) => verdict,
    colour: (text, { verdict }, palette) =>
      verdict === 'ok' ? palette.green(text) : verdict === 'warn' ? palette.yellow(text) : palette.red(text),
  },
  { title: 'WHAT', of: ({ name }) => name },
  { title: 'FOUND', of: ({ detail, todo }) => (todo === null ? detail : `${detail}; ${todo}`) },
]
