/** `headroom token …` and `headroom audit`: their options. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { ROLES } from '../../controller/model/role.ts'
import { calls, remote, withExamples, type SetExit } from '../command/command-shape.ts'
import { folder, timeWithin, whole } from '../command/option-values.ts'

const MINUTE_MS = 60_000
const TEN_YEARS_MS = 315_360_000_000
const MAX_AUDIT_ROWS = 100_000
const DEFAULT_AUDIT_ROWS = 20

export function addTokenCommands(program: Command, setExit: SetExit): void {
  const token = program.command('token').description('tokens for the REST API (docs/security.md)')
  addCreate(token, setExit)
  withExamples(
    offline(remote(token.command('list').description('list all tokens, without their secrets'))),
    'headroom token list',
  ).action(calls(setExit, () => import('./tokens.ts'), 'tokenList'))
  withExamples(
    offline(
      remote(
        token
          .command('revoke')
          .description('revoke tokens immediately')
          .argument('<id...>', 'IDs of the tokens'),
      ),
    ).option('--force', 'also revoke the last admin token'),
    'headroom token revoke k7v2m4x3q5zd',
  ).action(calls(setExit, () => import('./tokens.ts'), 'tokenRevoke'))
  withExamples(
    token
      .command('generate')
      .description('generate a secret for CONTROLLER_ADMIN_TOKEN_FILE; it is not stored elsewhere')
      .option(
        '--out <file>',
        'file to write, readable only by you; an existing file is never overwritten (default: stdout)',
      ),
    'headroom token generate --out admin.token',
  ).action(calls(setExit, () => import('./tokens.ts'), 'tokenGenerate'))
}

function addCreate(token: Command, setExit: SetExit): void {
  withExamples(
    offline(
      remote(
        token
          .command('create')
          .description('create a token; its secret is printed only once')
          .argument('<name>', 'name of the token'),
      ),
    )
      .addOption(new Option('--role <role>', 'role of the token').choices(ROLES).makeOptionMandatory())
      .option('--expires <time>', 'lifetime', timeWithin(MINUTE_MS, TEN_YEARS_MS)),
    'headroom token create alice --role submitter --expires 90d',
    'headroom token create root --role admin --data-dir ./data  # the first one, before the controller runs',
  ).action(calls(setExit, () => import('./tokens.ts'), 'tokenCreate'))
}

export function addAudit(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('audit')
        .description('list accepted and refused requests with their callers, newest first'),
    )
      .option('--actor <name>', 'only requests of this caller')
      .option('--action <operation>', 'only this operation, for example putConfig')
      .option('--target <text>', 'only requests whose method and path contain this text')
      .addOption(
        new Option('--outcome <outcome>', 'only requests with this result').choices([
          'accepted',
          'refused',
          'failed',
        ]),
      )
      .option('--last <n>', 'maximum number of rows', whole(1, MAX_AUDIT_ROWS), DEFAULT_AUDIT_ROWS),
    'headroom audit --outcome refused',
    'headroom audit --actor alice --last 200 -o jsonl',
  ).action(calls(setExit, () => import('./tokens.ts'), 'audit'))
}

function offline(command: Command): Command {
  return command.option(
    '--data-dir <dir>',
    'access the store in this folder (or at CONTROLLER_STORE_URL) directly; stop its controllers first',
    folder,
  )
}
