param([string]$Path = ".")

$Limit = 10

# Lists the largest files.
function Get-Largest {
    param([string]$Folder, [int]$Count)
    Get-ChildItem $Folder -Recurse -File |
        Sort-Object Length -Descending |
        Select-Object -First $Count
}

class Report {
    [string]$Title

    Report([string]$title) {
        $this.Title = $title
        Write-Verbose "made"
    }

    [void] Print() {
        Write-Host $this.Title
        Write-Host ("-" * 20)
    }
}

enum Level {
    Low
    High
}

Get-Largest -Folder $Path -Count $Limit | Format-Table
