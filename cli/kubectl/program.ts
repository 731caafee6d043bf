/** The commands of the plugin `kubectl headroom`. Their actions are loaded when called. */
import { Command, Option } from 'commander'
import { packageVersion } from '../../services/package-info.ts'
import { calls, withExamples, type SetExit } from '../command/command-shape.ts'
import { timeWithin } from '../command/option-values.ts'
import { onOneLine } from '../command/one-line.ts'
import { addForecastOptions } from '../kubernetes/commands.ts'
import { OUTPUT_FORMATS } from '../output/formats.ts'

const MAX_WAIT_MS = 86_400_000

export function kubectlProgramOf(setExit: SetExit): Command {
  const program = new Command('kubectl headroom')
    .description('Shows how Headroom manages pods and GPUs in the current kubectl cluster')
    .version(packageVersion(), '-V, --version')
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(onOneLine(text)) })
  const pod = ['<pod>', 'name of the pod'] as const
  withExamples(
    printing(
      ofCluster(
        program.command('explain').description('explain what a pod waits for, or where it is placed'),
      ),
    ),
    'kubectl headroom explain train-17 -n research',
  )
    .argument(...pod)
    .action(calls(setExit, () => import('./explain.ts'), 'explain'))
  withExamples(
    printing(ofCluster(program.command('nodes').description('list the nodes whose GPUs Headroom manages'))),
    'kubectl headroom nodes -o wide',
  ).action(calls(setExit, () => import('./nodes.ts'), 'nodes'))
  withExamples(
    printing(
      ofCluster(
        program
          .command('doctor')
          .description('check the installation: resources, webhooks, components and agents'),
      ),
    ),
    'kubectl headroom doctor',
  ).action(calls(setExit, () => import('./doctor.ts'), 'doctor'))
  withExamples(
    ofCluster(
      program
        .command('release')
        .description(
          'let a pod run without Headroom: keep it in VRAM permanently, or replace it with a plain pod',
        ),
    )
      .option('--undo', 'allow the pod to be swapped out again')
      .option('--replace', 'delete a waiting pod that has no controller, and recreate it as a plain pod')
      .addOption(
        new Option('--wait <time>', 'maximum time to wait until the pod is in VRAM or the old pod is deleted')
          .argParser(timeWithin(1_000, MAX_WAIT_MS))
          .default(120_000, '2m'),
      ),
    'kubectl headroom release train-17',
    'kubectl headroom release train-17 --undo',
  )
    .argument(...pod)
    .action(calls(setExit, () => import('./release.ts'), 'release'))
  withExamples(
    addForecastOptions(
      ofCluster(
        program
          .command('whatif')
          .description(
            'simulate the pods of the cluster with several overcommit percentages; nothing is changed',
          ),
      ),
    ),
    'kubectl headroom whatif --overcommit 0..100:25',
  ).action(calls(setExit, () => import('./whatif.ts'), 'whatif'))
  return program
}

/** Adds the connection options of kubectl. */
function ofCluster(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'namespace (default: the namespace of the context)')
    .option('--context <name>', 'kubeconfig context (default: the current context)')
    .option('--kubeconfig <file>', 'kubeconfig file (default: the file that kubectl uses)')
}

function printing(command: Command): Command {
  return command.addOption(
    new Option('-o, --output <format>', 'output format').choices(OUTPUT_FORMATS).default('table'),
  )
}
