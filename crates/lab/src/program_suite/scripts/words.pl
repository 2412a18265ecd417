# Words of a large text: counted in a hash, kept in lists, joined and sorted.
use strict;
my (%count, %lines);
open my $file, "<", "words.txt" or die;
while (my $line = <$file>) {
    chomp $line;
    for my $word (split / /, $line) {
        $count{$word}++;
        push @{$lines{substr $word, 0, 2}}, $word . $.;
    }
}
my $total = 0;
$total += length join ",", sort @{$lines{$_}} for sort keys %lines;
print "$total ", scalar(keys %count), "\n";
