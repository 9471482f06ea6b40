import { type OptionSpec, whereOptions } from "../command.ts";
import { isList } from "../parse-line.ts";
import type { Place, Word } from "./command-tree.ts";

/** A script for PowerShell 5.1 and later, dot-sourced from the profile. */
export function powershellCompletion(program: string, places: readonly Place[]): string {
  return `# PowerShell completion for ${program}, made by "${program} completion powershell"
Register-ArgumentCompleter -Native -CommandName '${program}', '${program}.exe' -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $places = @{
${places.map(placeEntry).join("\n")}
  }
  $typed = @($commandAst.CommandElements | Select-Object -Skip 1 |
    Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
  $place = ''
  foreach ($word in $typed) { if ($places.ContainsKey("$place/$word")) { $place = "$place/$word" } }
  $known = $places[$place]
  $previous = if ($typed.Count -gt 0) { $typed[-1] } else { '' }
  $prefix = ''
  $current = $wordToComplete
  if ($current -match '^(--[^=]+=)(.*)$') { $prefix = $Matches[1]; $current = $Matches[2]; $previous = $prefix.TrimEnd('=') }
  $of = if ($known.byOption.ContainsKey($previous)) { $known.byOption[$previous] }
    elseif ($current -like '-*') { $known.options }
    elseif ($known.commands.Count -gt 0) { $known.commands }
    else { $known.operand }
  if ($of -is [string]) {
    if ($of -eq 'text') { return }
    if ($of -like 'ask:*') {
      $where = @(for ($i = 0; $i -lt $typed.Count; $i++) {
        if ($typed[$i] -in ${whereOptions.map((name) => quoted(name)).join(", ")}) { $typed[$i]; $typed[$i + 1] }
      })
      & $commandAst.CommandElements[0].ToString() ipam names @where '--' $of.Substring(4) $current 2>$null | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new("$prefix$_", $_, 'ParameterValue', $_)
      }
      return
    }
    Get-ChildItem -Path "$current*" -Directory:($of -eq 'directory') -ErrorAction SilentlyContinue | ForEach-Object {
      [System.Management.Automation.CompletionResult]::new("$prefix$($_.FullName)", $_.Name, 'ProviderItem', $_.FullName)
    }
    return
  }
  $of.Keys | Where-Object { $_ -like "$current*" } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new("$prefix$_", $_, 'ParameterValue', $of[$_])
  }
}
`;
}

function placeEntry({ path, commands, options, values, operand }: Place): string {
  const byOption = values.map(({ option, of }) => `${quoted(option)} = ${offer(of)}`).join("; ");
  return `    ${quoted(path)} = @{ commands = ${table(commands)}; options = ${table(options)}; byOption = @{ ${byOption} }; operand = ${offer(operand)} }`;
}

function offer(of: OptionSpec["of"]): string {
  if (of === undefined) return "'text'";
  if (typeof of === "string") return quoted(of);
  return isList(of) ? table(of.map((word) => ({ word, help: word }))) : quoted(`ask:${of.ask}`);
}

const table = (words: readonly Word[]): string =>
  `[ordered]@{ ${words.map(({ word, help }) => `${quoted(word)} = ${quoted(help)}`).join("; ")} }`;

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
