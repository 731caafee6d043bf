/** `headroom whatif`: its options. Its action is loaded when it is called. */
import { Option, type Command } from 'commander'
import { MAX_VRAM_MIB } from '../../protocol/limits.ts'
import { ACTIVITY_MODEL_NAMES } from '../../simulator/trace/activity.ts'
import { calls, withExamples, withServer, type SetExit } from '../command/command-shape.ts'
import { integers, MAX_SEED, mib, whole } from '../command/option-values.ts'
import { objectives } from '../sim/sweep-values.ts'

const MAX_PERCENT = 1000
const MAX_JOBS = 1024

export function addWhatif(program: Command, setExit: SetExit): void {
  const whatif = withServer(
    program
      .command('whatif')
      .description(
        'forecast the effect of several overcommit percentages on the cluster, or simulate a Kubernetes ' +
          'cluster from the output of kubectl; nothing is changed or installed',
      ),
  ).option(
    '--kubernetes <files>',
    'JSON files of `kubectl get pods,nodes,namespaces,priorityclasses -A -o json`, separated by commas ' +
      '(default: ask the controller)',
  )
  withExamples(
    addForecastOptions(whatif, ' (this option and those up to --out require --kubernetes)'),
    'headroom whatif --overcommit 40',
    'kubectl get pods,nodes,namespaces,priorityclasses -A -o json > cluster.json',
    'headroom whatif --kubernetes cluster.json --overcommit 0..100:25',
    'headroom whatif --kubernetes pods.json,nodes.json --pod-vram 10Gi --scenario mine.scenario.yaml',
  ).action(calls(setExit, () => import('./whatif.ts'), 'whatif'))
}

/** Also of the plugin of kubectl. @param whenUsed what the options of simulations require */
export function addForecastOptions(command: Command, whenUsed = ''): Command {
  return command
    .option(
      '--overcommit <a..b:step>',
      'overcommit percentages, as a range or a list',
      integers(0, MAX_PERCENT),
      [0, 25, 50, 75, 100],
    )
    .option('--seeds <a..b>', `seeds for each percentage${whenUsed}`, integers(0, MAX_SEED), [1, 2, 3])
    .option(
      '--pod-vram <size>',
      'VRAM of pods that request whole GPUs (default: all VRAM of their GPUs)',
      mib(1, MAX_VRAM_MIB),
    )
    .option('--vram-map <model=mib,…>', 'VRAM of each GPU model, for nodes without a VRAM label')
    .addOption(
      new Option('--activity <model>', 'GPU activity model for the pods')
        .choices([...ACTIVITY_MODEL_NAMES])
        .default('serving'),
    )
    .option('--until <time>', 'simulated time', '24h')
    .option('--objective <figure<=max>', 'objective, as in `sim sweep`', objectives)
    .option('--jobs <n>', 'concurrent runs (default: one per core)', whole(1, MAX_JOBS))
    .option('--scenario <file>', 'also write the scenario, so that you can edit it and run `sim sweep`')
    .option('--out <folder>', 'folder for report.html and the other files of `sim sweep`')
    .option('--json', 'print JSON: every forecast, or every run with the summary and the advice')
}
