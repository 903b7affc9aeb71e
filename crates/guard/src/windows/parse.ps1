# Reads a text from standard input, has PowerShell parse it, and tells what is in it as JSON. Nothing of the text
# runs. Offsets are those of UTF-16.
$reader = [IO.StreamReader]::new([Console]::OpenStandardInput(), [Text.UTF8Encoding]::new($false))
$text = $reader.ReadToEnd()
$tokens = $null
$errors = $null
$ast = [Management.Automation.Language.Parser]::ParseInput($text, [ref]$tokens, [ref]$errors)

function Span($extent) {
    @{ start = $extent.StartOffset; end = $extent.EndOffset }
}

# A word whose value is not known before it runs has none.
function Word($element) {
    $word = Span $element.Extent
    if ($element -is [Management.Automation.Language.CommandParameterAst]) {
        $word.value = '-' + $element.ParameterName
    } elseif ($element -is [Management.Automation.Language.StringConstantExpressionAst]) {
        $word.value = $element.Value
    } elseif ($element -is [Management.Automation.Language.ConstantExpressionAst]) {
        $word.value = [string]$element.Value
    }
    $word
    if ($element -is [Management.Automation.Language.CommandParameterAst] -and $element.Argument) {
        Word $element.Argument
    }
}

$commands = foreach ($found in $ast.FindAll({ $args[0] -is [Management.Automation.Language.CommandAst] }, $true)) {
    $command = Span $found.Extent
    $command.words = @($found.CommandElements | ForEach-Object { Word $_ })
    $command.writes = @($found.Redirections |
        Where-Object { $_ -is [Management.Automation.Language.FileRedirectionAst] } |
        ForEach-Object { Word $_.Location })
    $command
}
$members = foreach ($found in $ast.FindAll({ $args[0] -is [Management.Automation.Language.MemberExpressionAst] }, $true)) {
    $member = Span $found.Extent
    if ($found.Expression -is [Management.Automation.Language.TypeExpressionAst]) {
        $member.type = $found.Expression.TypeName.FullName
    }
    if ($found.Member -is [Management.Automation.Language.StringConstantExpressionAst]) {
        $member.name = $found.Member.Value
    }
    $member.called = $found -is [Management.Automation.Language.InvokeMemberExpressionAst]
    $member
}
$told = @{
    mcp = 1
    errors = @($errors | ForEach-Object { Span $_.Extent })
    commands = @($commands)
    members = @($members)
} | ConvertTo-Json -Depth 8 -Compress
$bytes = [Text.UTF8Encoding]::new($false).GetBytes($told)
[Console]::OpenStandardOutput().Write($bytes, 0, $bytes.Length)
