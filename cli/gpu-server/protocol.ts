/** The `protocol` commands: the wire format, for authors of servers and clients. */
import type { Command } from 'commander'

const LINE_WIDTH = 150

export function addProtocolCommands(program: Command): void {
  const protocol = program
    .command('protocol')
    .description('messages between the controller, GPU servers and clients')
  protocol
    .command('asyncapi')
    .description(
      'print the AsyncAPI 3 document of the protocol: subjects, operations, messages and their schemas',
    )
    .option('--json', 'print JSON')
    .action(async ({ json = false }: { readonly json?: boolean }) => {
      const { asyncApiDocument } = await import('../../protocol/asyncapi.ts')
      const document = asyncApiDocument()
      if (json) {
        process.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
        return
      }
      const { stringify } = await import('yaml')
      process.stdout.write(`${MADE_BY}${stringify(document, { lineWidth: LINE_WIDTH })}`)
    })
}

const MADE_BY = '# Made by `headroom protocol asyncapi` from the messages and conversations in protocol/.\n'
